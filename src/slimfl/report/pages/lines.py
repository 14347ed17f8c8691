"""The curves of a report's groups as lines for plots, thinned to suit a page.

A page stays below 1 MB however many runs it shows: the more curves, the fewer points each has.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from slimfl.report.pages.plots import Line
from slimfl.results import curves
from slimfl.results.axes import x_axes
from slimfl.results.batteries import battery_line
from slimfl.results.curves import POINTS, Arrivals, Curve, thin
from slimfl.results.groups import Group
from slimfl.results.records import RunRecord

#: Target numbers of values in all curves of a page, and of cells in all its heat maps.
NUMBERS, CELLS = 40_000, 200_000
#: Minimum number of points per curve.
FEWEST = 40


@dataclass
class Lines:
    """Makes the curves of groups, each with at most `points` rounds."""

    points: int
    cells: int
    thinned: bool = False
    """True if any curve or heat map has lost rounds or devices so far."""

    @classmethod
    def for_page(cls, groups: Sequence[Group]) -> "Lines":
        """With as many points as a page allows for these groups."""
        numbers = sum(_numbers_per_round(group) for group in groups)
        maps = max(1, len(groups))
        return cls(points=max(FEWEST, min(POINTS, NUMBERS // max(1, numbers))), cells=CELLS // maps)

    def accuracy(self, group: Group) -> list[Line]:
        """Accuracy in percent over rounds, one line per width."""
        return [
            self._line(group, width, curve, 100)
            for width, curve in curves.accuracy_curves(group).items()
        ]

    def accuracy_against_cost(self, group: Group) -> list[Line]:
        """Accuracy in percent against cumulated costs.

        Transmit energy in J, airtime in s, data sent in MB, virtual time in s, and the energy of
        computing and sending in J.
        """
        lines = []
        for line in self.accuracy(group):
            rounds = [int(round) for round in line.x[0]]
            spent, axes = curves.costs_until(group, rounds), x_axes(group, rounds)
            places = [spent[key] for key in ("energy_j", "airtime_s", "sent_mb")]
            places += [axes["seconds"].values, axes["joules"].values]
            lines.append(Line(line.name, line.method, line.width, places, line.mean,
                              line.low, line.high))  # fmt: skip
        return lines

    def losses(self, group: Group, key: str) -> list[Line]:
        """`loss` or `training_loss` over rounds, one line per width."""
        return [
            self._line(group, width, curve)
            for width, curve in curves.loss_curves(group, key).items()
        ]

    def energy(self, group: Group) -> list[Line]:
        """Transmit energy so far, over rounds."""
        return [self._line(group, None, curves.energy_curve(group))]

    def batteries(self, group: Group) -> list[Line]:
        """The total battery charge in percent over rounds and virtual time, of the first seed."""
        found = battery_line(group.runs[0])
        if found is None:
            return []
        kept, fewer = thin(range(len(found.rounds)), self.points)
        self.thinned |= fewer
        left: list[float | None] = [100 * found.left_share[i] for i in kept]
        places: list[list[float]] = [[*_picked(found.rounds, kept)], _picked(found.seconds, kept)]
        return [Line(group.name, group.name, None, places, left, left, left)]

    def arrivals(self, run: RunRecord) -> Arrivals:
        """The heat map of one run."""
        table = curves.arrivals(run)
        most = max(FEWEST, self.cells // max(1, len(table.devices)))
        columns, fewer = thin(range(len(table.rounds)), most)
        self.thinned |= fewer or table.thinned
        return Arrivals(
            rounds=_picked(table.rounds, columns),
            devices=table.devices,
            codes=[_picked(row, columns) for row in table.codes],
            thinned=fewer or table.thinned,
        )

    def _line(self, group: Group, width: str | None, curve: Curve, scale: float = 1) -> Line:
        kept, fewer = thin(range(len(curve.rounds)), self.points)
        self.thinned |= fewer or curve.thinned

        def scaled(values: list[float]) -> list[float | None]:
            return [scale * values[i] for i in kept]

        name = f"{group.name}, {width}" if width else group.name
        rounds: list[float] = [*_picked(curve.rounds, kept)]
        return Line(name, group.name, width, [rounds], scaled(curve.mean), scaled(curve.low),
                    scaled(curve.high))  # fmt: skip


def _numbers_per_round(group: Group) -> int:
    """Accuracy twice, two losses, five costs; with several seeds each curve has a band."""
    curves_per_width, costs = 4, 5
    widths = len(group.runs[0].width_names)
    return widths * (curves_per_width * (3 if len(group.runs) > 1 else 1) + costs)


def _picked(values: Sequence[Any], kept: Iterable[int]) -> list[Any]:
    return [values[i] for i in kept]
