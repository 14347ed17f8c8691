"""A method of one's own: weak devices train and send the narrow width only."""

from dataclasses import dataclass

import slimfl
from slimfl.federation import SegmentAverage
from slimfl.nn import Segments, Vector
from slimfl.radio import Messages
from slimfl.training import Curriculum


@dataclass(frozen=True)
class TwoTiers:
    """Devices 0 to `weak` - 1 handle segment 1 alone; the others do what SlimFL does."""

    weak: int
    name: str = "two-tiers"

    @property
    def widths(self) -> tuple[int, ...]:
        """The widths that the server evaluates: the narrow one (0) and the full one (1)."""
        return (0, 1)

    def trains(self, device: int) -> Curriculum:
        """What a device trains: indices of widths."""
        return Curriculum((0,)) if device < self.weak else Curriculum((0, 1))

    def sends(self, device: int) -> Messages:
        """What a device sends: for each superposed message, the segments in it."""
        return ((0,),) if device < self.weak else ((0,), (1,))

    def merge(self, segments: Segments, last: Vector, missing: str) -> SegmentAverage:
        """How the server merges: each segment over the devices that delivered it."""
        return SegmentAverage(segments, last, missing)


def main() -> None:
    """Run the method beside SlimFL under one seed: both see the same batches and gains."""
    common = {"data__dataset": "synthetic", "rounds": 5, "seed": 3}
    common |= {"training__steps": 10, "training__learning_rate": 5e-3}
    for method in ("slimfl", TwoTiers(weak=4)):
        run = slimfl.run(method=method, **common)
        print(run.experiment.method, run.final_accuracy)
        print("  segments that arrived, by round:", [line["delivered"] for line in run.lines])


if __name__ == "__main__":
    main()
