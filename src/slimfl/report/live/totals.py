"""The rounds of a run for the page: one short row per round, and sums for the table."""

import json
from collections import deque
from statistics import fmean
from typing import Any

from slimfl.results.energy import round_energy_j
from slimfl.results.frames import LAST
from slimfl.round import RoundRecord


class Totals:
    """Sums over the rounds of one run."""

    def __init__(self, segments: int) -> None:
        self.rounds = 0
        self.widths: list[str] = []
        """The widths whose accuracy a row contains, in order."""
        self._sums = [0.0, 0.0, 0.0, 0.0]
        self._last: deque[list[float]] = deque(maxlen=LAST)
        self._best: list[float] = []
        self._delivered = [0] * segments
        self._bits = [0.0] * segments
        self._asked = 0
        self._refused = 0

    def add(self, line: RoundRecord) -> str:
        """Add a round and return its row as JSON.

        A row is `[accuracy of every evaluated width or 0, compute seconds, airtime seconds, joule,
        bit]`, the last four summed up to this round.
        """
        self.rounds += 1
        if line.accuracy and not self.widths:
            self.widths = sorted(line.accuracy, key=lambda name: float(name[:-1]))
        accuracy = [line.accuracy[width] for width in self.widths] if line.accuracy else []
        if accuracy:
            self._last.append(accuracy)
            self._best = list(map(max, accuracy, self._best or accuracy))
        costs = (
            line.seconds.training + line.seconds.evaluation,
            line.airtime_s,
            round_energy_j(line, computing=False),
            sum(line.bits_sent),
        )
        self._sums = [before + cost for before, cost in zip(self._sums, costs, strict=True)]
        self._delivered = [a + b for a, b in zip(self._delivered, line.delivered, strict=True)]
        self._bits = [a + b for a, b in zip(self._bits, line.bits_sent, strict=True)]
        self._asked += line.asked
        self._refused += len(line.refused)
        row = [[_short(each) for each in accuracy] or 0, *map(_short, self._sums)]
        return json.dumps(row, separators=(",", ":"), allow_nan=False)

    def summary(self) -> dict[str, Any]:
        """The numbers of the table: those of `slimfl compare`, up to the last round."""
        finals = [fmean(values) for values in zip(*self._last, strict=True)]
        return {
            "rounds": self.rounds,
            "accuracy": dict(zip(self.widths, finals, strict=True)) if finals else {},
            "best": dict(zip(self.widths, self._best, strict=True)) if self._best else {},
            "delivered": [
                count / self._asked if bits and self._asked else None
                for count, bits in zip(self._delivered, self._bits, strict=True)
            ],
            "compute_s": self._sums[0],
            "airtime_s": self._sums[1],
            "energy_j": self._sums[2],
            "bits": self._sums[3],
            "refused": self._refused,
        }


def _short(value: float) -> float:
    """As many digits as are visible in a plot; integers without a decimal point."""
    rounded = float(f"{value:.7g}")
    return int(rounded) if rounded.is_integer() and rounded < 1e15 else rounded
