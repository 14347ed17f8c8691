"""Stop a run in the middle, resume it, and compare it with one that was never stopped."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import slimfl
from slimfl.nn import Vector
from slimfl.round import RoundRecord

COMMON = slimfl.Experiment(
    rounds=6, data=slimfl.Data(dataset="synthetic"), training=slimfl.Training(steps=10)
)


class StopAfter(slimfl.Callback):
    """A callback that stops the run, like a user who presses Ctrl-C."""

    def __init__(self, round: int) -> None:
        self.round = round

    def on_round(self, record: RoundRecord, model: Callable[[], Vector]) -> None:
        """Called with the record of a round, before it is written."""
        print("round", record.round, record.accuracy)
        if record.round == self.round:
            raise KeyboardInterrupt


def main() -> None:
    """Stop in round 3 of 6, resume, compare."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "stopped")
        try:
            COMMON.run(folder, callbacks=[StopAfter(3)])
        except KeyboardInterrupt:
            print("stopped; the folder contains", sorted(path.name for path in folder.iterdir()))
        resumed = slimfl.resume(folder)

    never_stopped = COMMON.run()
    assert len(resumed.lines) == len(never_stopped.lines) == 6
    assert np.array_equal(resumed.parameters, never_stopped.parameters)
    print("the resumed run ends with the same parameters, bit for bit")


if __name__ == "__main__":
    main()
