"""Table IV: computing cost and transmit power of UL-MobileNet."""

from __future__ import annotations

from lab.reproduction import paper
from lab.reproduction.cells.scale import Scale
from lab.reproduction.exhibits.exhibit import Exhibit, Recipe, Runs, Table
from lab.reproduction.judging.verdict import Claim, Comparison, Measure, Subject
from slimfl.experiment import RadioSection
from slimfl.radio import optimal_split, watt

MULTIPLY_ADDS = "million multiply-adds"


def show(scale: Scale, runs: Runs) -> Exhibit:
    """Count the network's operations; split 23 dBm optimally at figure 4's rate."""
    from slimfl.nn import ULMobileNet, cost  # imports torch, which other exhibits do not need

    half, full = cost(ULMobileNet(), (0.5, 1.0), (1, 28, 28))
    shares = optimal_split((paper.FIGURE4_BIT_S_HZ,) * 2)
    power_mw = [1000 * watt(RadioSection().power_dbm) * share for share in shares]
    quantities = [
        (MULTIPLY_ADDS, paper.MFLOPS, [w.multiply_adds / 1e6 for w in (full, half)], 2),
        ("parameters", paper.PARAMETERS, (full.parameters, half.parameters), 0),
        ("bits per round", paper.BITS, (full.bits, half.bits), 0),
        ("transmit power, mW", paper.POWER_MW, power_mw, 1),
    ]
    rows, claims = [], []
    for name, printed, ours, digits in quantities:
        pairs = list(zip(printed, ours, strict=True))
        rows.append([name, *(f"{value:,.{digits}f}" for pair in pairs for value in pair)])
        claims.append(
            Claim(
                f"{name[0].upper()}{name[1:]} at 1.0x and 0.5x",
                "table IV",
                tuple(
                    Comparison(f"{width}", mine, paper=theirs, digits=digits)
                    for width, mine, theirs in zip(("1.0x", "0.5x"), ours, printed, strict=True)
                ),
                about=Subject(Measure.COMPUTING) if name == MULTIPLY_ADDS else None,
            )
        )
    return Exhibit(
        name="table4",
        title="Table IV: computing cost and transmit power",
        paper="A forward pass takes 2.76 (1.0x) and 0.79 (0.5x) million operations, the model has "
        "4,586 and 2,293 parameters, and the two powers are 132.1 and 67.4 mW.",
        table=Table(["", "paper 1.0x", "ours 1.0x", "paper 0.5x", "ours 0.5x"], rows),
        claims=claims,
        notes=[
            "The paper's 2,293 is half of 4,586; the 0.5x network of its own table I has 1,530 "
            "(E4). Its 172,688 bits are 37.7 per parameter; ours are 32. `radio.accounting = "
            '"paper"` takes its bits.',
            "No choice of strides and paddings gives both of the paper's operation counts (E5).",
            "The powers are lambda* and 1 - lambda* times 23 dBm at 0.7375 bit/s/Hz, so 132.1 mW "
            "belongs to the left half, which the paper's column calls 1.0x.",
        ],
    )


TABLE4 = Recipe("table4", lambda scale: [], show)
