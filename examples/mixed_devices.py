"""Which method is best for unequal devices? A table over seeds, with paired differences.

Run from `docs/howto`, where `mixed.toml` is (half of the devices train 0.5x at most, all are spread
over a cell), with half-size images and the paper's local work:

    S="slimfl run mixed.toml --on local --rounds 40 --seed 0,1,2 --set data.alpha=0.1,1
       --set data.downscale=2 --set training.epochs=1 --set federation.evaluate_every=5"
    $S --method vanilla-0.5x,vanilla-1.0x,slimfl --out runs/mixed/one-split
    $S --method slimfl --set radio.split=per-device --set radio.split_objective=bound,weighted \
       --out runs/mixed/per-device
    python ../../examples/mixed_devices.py runs/mixed/*
"""

import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean, stdev

from scipy.stats import t

from slimfl.errors import RequestError
from slimfl.results.devices import LEAST_HEARD, device_summary
from slimfl.results.groups import group
from slimfl.results.records import RunRecord, find

#: Evaluations at the end of a run whose mean is its accuracy.
LAST = 3


def final(record: RunRecord, width: str) -> float | None:
    """The accuracy of a width in percent, over the last evaluations."""
    scored = [line.accuracy[width] for line in record.lines if width in line.accuracy]
    return 100 * fmean(scored[-LAST:]) if scored else None


def spread(values: Sequence[float]) -> str:
    """Mean and deviation over seeds."""
    deviation = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
    return f"{fmean(values):.1f}{deviation}"


def paired(values: Sequence[float]) -> str:
    """The mean difference and Student's 95% interval."""
    if len(values) < 2:
        return f"{values[0]:+.1f}"
    half = t.ppf(0.975, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return f"{fmean(values):+.1f} ± {half:.1f}"


def heard(record: RunRecord) -> float:
    """Percent of all uploads whose first segment arrived."""
    asked = sum(len(line.devices) + len(line.dropped_out) for line in record.lines)
    return 100 * sum(line.delivered[0] for line in record.lines) / asked


def fairness(runs: Sequence[RunRecord]) -> str:
    """Accuracy of every width on the data of the devices heard least, over evaluated rounds."""
    found = [
        summary.accuracy.get(LEAST_HEARD, {}) for run in runs if (summary := device_summary(run))
    ]
    widths = dict.fromkeys(width for each in found for width in each)
    return " / ".join(spread([100 * each[width] for each in found]) for width in widths)


def table(records: Iterable[RunRecord]) -> list[str]:
    """One row per method and scene, in Markdown."""
    head = ("devices", "method", "seeds", "0.5x, %", "1.0x, %", "heard, %", "heard least, %",
            "time, s", "sending, J", "computing, J", "0.5x over SlimFL",
            "1.0x over SlimFL")  # fmt: skip
    rows = [head, ("---",) * len(head)]
    groups = group(records)
    plain = {each.scene: each for each in groups if each.name == "SlimFL"}
    for each in sorted(groups, key=lambda one: one.scene):
        cells = [each.scene, each.name, str(len(each.runs))]
        known = {
            w: [v for r in each.runs if (v := final(r, w)) is not None] for w in ("0.5x", "1.0x")
        }
        cells += [spread(values) if values else "" for values in known.values()]
        cells.append(spread([heard(run) for run in each.runs]))
        cells.append(fairness(each.runs))
        cells.append(f"{fmean(run.lines[-1].clock_s or 0 for run in each.runs):.0f}")
        cells.append(f"{fmean(sum(line.energy_j for line in run.lines) for run in each.runs):.3f}")
        computing = [sum(line.compute_energy_j or 0 for line in run.lines) for run in each.runs]
        cells.append(f"{fmean(computing):.1f}")
        for width in known:
            base = {run.experiment.seed: final(run, width) for run in plain[each.scene].runs}
            gaps = [
                value - base[run.experiment.seed]
                for run in each.runs
                if (value := final(run, width)) is not None and run.experiment.seed in base
            ]
            cells.append(paired(gaps) if gaps and each.name != "SlimFL" else "")
        rows.append(tuple(cells))
    return ["| " + " | ".join(row) + " |" for row in rows]


if __name__ == "__main__":
    try:
        print("\n".join(table(find([Path(name) for name in sys.argv[1:]]))))
    except RequestError as error:  # there are no runs
        print(error, file=sys.stderr)
        sys.exit(2)
