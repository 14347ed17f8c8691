"""One round of one device, from `step` to its record: calls of functions in src/slimfl, and files.

python tests/walk.py [--list]
"""

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import slimfl
from slimfl.experiment import build
from slimfl.round import Simulation

PACKAGE = Path(slimfl.__file__).parent
ONE_DEVICE = {
    "engine": "native",
    "threads": 1,
    "data": {"dataset": "synthetic", "train_samples": 100, "test_samples": 50},
    "federation": {"devices": 1},
    "training": {"steps": 2},
}
#: Frames that are no call of a function with a name.
ANONYMOUS = {"<module>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>"}


def walk(simulation: Simulation) -> Counter[tuple[str, str]]:
    """How often each function, named by file and name, is called in the next round.

    A generator counts once, however often it is resumed.
    """
    calls: Counter[tuple[str, str]] = Counter()
    seen: set[int] = set()
    frames: list[FrameType] = []  # kept, so that no id is used twice

    def trace(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        inside = code.co_filename.startswith(str(PACKAGE))
        if event != "call" or not inside or code.co_name in ANONYMOUS or id(frame) in seen:
            return
        seen.add(id(frame))
        frames.append(frame)
        calls[str(Path(code.co_filename).relative_to(PACKAGE)), code.co_qualname] += 1

    sys.setprofile(trace)
    try:
        simulation.step()
    finally:
        sys.setprofile(None)
    return calls


def main() -> None:
    """Print the number of functions and of calls, and in how many files they are."""
    simulation = Simulation(build(ONE_DEVICE))
    simulation.step()  # what is computed once is not a part of the walk
    calls = walk(simulation)
    if "--list" in sys.argv:
        for (file, name), count in sorted(calls.items()):
            print(f"{count:4} {file}: {name}")
    files = {file for file, _ in calls}
    print(f"{len(calls)} functions, {calls.total()} calls, {len(files)} files")


if __name__ == "__main__":
    main()
