"""What a round of every method costs: the same devices and images, half of them weak.

A weak device holds the half width at most. So the methods differ as they do in use: who trains
which widths, and who sits out. Each is trained by the native engine where that can, else by torch.
"""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from benchmarks.runners import interleave, local_runner, rates, ratio, spread
from benchmarks.work import Work
from slimfl.methods import method_names

#: Methods that wait in memory at once, beside SlimFL.
AT_ONCE = 4
REFERENCE = "slimfl"


def method_costs(
    work: Work, repetitions: int, tell: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Seconds per round, images per second and multiply-adds per round of every method."""
    work = replace(work, weak_share=0.5)
    others = [name for name in method_names(work.widths) if name != REFERENCE]
    rows: dict[str, Any] = {}
    for begin in range(0, len(others), AT_ONCE):
        some = [REFERENCE, *others[begin : begin + AT_ONCE]]
        tell(f"  {', '.join(some[1:])}")
        runners = [local_runner("method", replace(work, kind=name)) for name in some]
        for name, runner in zip(some, runners, strict=True):
            runner.name = name
        results = interleave(runners, repetitions, launch_together=True)
        reference = [each["seconds"] for each in results[REFERENCE]]
        for name in some:
            seconds = [each["seconds"] for each in results[name]]
            native = results[name][0]["native_share"]
            rows.setdefault(
                name,
                {
                    "engine": "native" if native == 1 else "torch" if not native else "both",
                    "seconds_per_round": spread(seconds),
                    "times_slimfl": ratio(seconds, reference),
                    "images_per_s": spread(rates(results[name])),
                    "multiply_adds_per_round": results[name][0]["multiply_adds"],
                },
            )
    return {"work": asdict(work), "rows": rows}
