"""Table V: the costs of a round in transmit power and computing."""

from __future__ import annotations

from lab.reproduction import paper
from lab.reproduction.cells.scale import Scale
from lab.reproduction.exhibits.exhibit import Exhibit, Recipe, Runs, Table
from lab.reproduction.judging.verdict import Claim, Comparison, Measure, Subject
from slimfl.experiment import RadioSection
from slimfl.methods import VANILLA_ALL, expand, full_assignment, method
from slimfl.radio import watt

WIDTHS = (0.5, 1.0)
NAMES = ("SlimFL", "Vanilla FL-1.5x")


def costs(name: str) -> tuple[float, float]:
    """The paper's two costs of one round: transmit power in mW, and mega-operations."""
    from slimfl.nn import ULMobileNet, cost  # imports torch, which other exhibits do not need

    section, sizes = RadioSection(), cost(ULMobileNet(), WIDTHS, (1, 28, 28))
    power, operations = 0.0, 0.0
    for part in (method(one, WIDTHS) for one in expand([name], WIDTHS)):
        power += 1000 * watt(section.power_dbm)  # each sends with all its power
        trained = full_assignment(part, len(WIDTHS)).widths
        operations += sum(sizes[i].multiply_adds for i in trained) / 1e6
    return power, operations


def show(scale: Scale, runs: Runs) -> Exhibit:
    """SlimFL against the two Vanilla FL runs that it replaces."""
    powers, operations = zip(*(costs(name) for name in ("slimfl", VANILLA_ALL)), strict=True)
    rows = [
        ["transmit power, mW per round", *_cells(paper.POWER_A_ROUND_MW, powers, 1)],
        ["computing, million operations", *_cells(paper.MFLOPS_A_ROUND, operations, 2)],
    ]
    return Exhibit(
        name="table5",
        title="Table V: cost of a round",
        paper="SlimFL needs half the transmit power of Vanilla FL-1.5x and as much computing.",
        table=Table(["", *(f"{who} {n}" for n in NAMES for who in ("paper", "ours"))], rows),
        claims=[
            _claim(Measure.POWER, "mW", paper.POWER_A_ROUND_MW, powers, 1),
            _claim(Measure.COMPUTING, "million operations", paper.MFLOPS_A_ROUND, operations, 2),
            Claim(
                "SlimFL takes half the transmit power and the same computing",
                "table V",
                (
                    Comparison(
                        "power of Vanilla FL-1.5x over SlimFL",
                        powers[1] / powers[0],
                        paper=2.0,
                        digits=1,
                    ),
                    Comparison(
                        "computing of Vanilla FL-1.5x over SlimFL",
                        operations[1] / operations[0],
                        paper=1.0,
                        digits=1,
                    ),
                ),
            ),
        ],
        notes=["The operations differ because the network's do (E5); their ratio does not."],
    )


def _cells(printed: tuple[float, ...], ours: tuple[float, ...], digits: int) -> list[str]:
    return [f"{v:.{digits}f}" for pair in zip(printed, ours, strict=True) for v in pair]


def _claim(
    measure: Measure, unit: str, printed: tuple[float, ...], ours: tuple[float, ...], digits: int
) -> Claim:
    return Claim(
        f"{measure.capitalize()} per round",
        "table V",
        tuple(
            Comparison(name, mine, paper=theirs, digits=digits, unit=unit)
            for name, mine, theirs in zip(NAMES, ours, printed, strict=True)
        ),
        about=Subject(measure),
    )


TABLE5 = Recipe("table5", lambda scale: [], show)
