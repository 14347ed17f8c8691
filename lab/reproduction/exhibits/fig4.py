"""Figure 4: D = 1/p1 + 1/p2 against the power split."""

from __future__ import annotations

import math

from lab.reproduction import paper
from lab.reproduction.cells.scale import Scale
from lab.reproduction.exhibits.exhibit import Exhibit, Recipe, Runs, Table
from lab.reproduction.judging.verdict import Claim, Comparison
from slimfl.experiment import RadioSection
from slimfl.radio import (
    Superposition,
    noise_to_power,
    optimal_split,
    optimal_split_numeric,
    outage_link,
    sinr_target,
)
from slimfl.radio.bound import inverse_probability_sum
from slimfl.report import split_figure

RATES = (paper.FIGURE4_BIT_S_HZ,) * 2


def show(scale: Scale, runs: Runs) -> Exhibit:
    """The closed form, the numeric optimum, and D at both and at the paper's other split."""
    target = float(sinr_target(RATES[0]))
    printed_formula = (target + math.sqrt(1 + target) - 1) / target
    closed = optimal_split(RATES)
    rows, numeric = [], {}
    for name in ("good", "poor"):
        section = RadioSection(channel=name, spectral_efficiency=RATES)
        numeric[name] = optimal_split_numeric(RATES, noise_to_power(section))
        for words, split in (
            ("closed form", closed),
            ("numeric optimum", numeric[name]),
            ("the paper's other", paper.OTHER_SPLIT),
        ):
            probabilities = outage_link(section).decoding_probabilities(Superposition(RATES, split))
            rows.append(
                [name, words, f"{split[0]:.3f}", *(f"{p:.3f}" for p in probabilities),
                 f"{inverse_probability_sum(probabilities):.4f}"]
            )  # fmt: skip
    good = RadioSection(channel="good", spectral_efficiency=RATES)
    return Exhibit(
        name="fig4",
        title="Figure 4: D against the power split",
        paper="The split λ* = 0.662 of proposition 1 is the numeric optimum as well.",
        table=Table(["channel", "split", "λ", "p1", "p2", "D"], rows),
        claims=[
            Claim(
                "lambda* = 0.662, analytic and numeric",
                "section VI-B, figure 4",
                (
                    Comparison(
                        "closed form (corrected)", closed[0], paper=paper.BEST_SPLIT, digits=3
                    ),
                    Comparison(
                        "numeric, good channel",
                        numeric["good"][0],
                        paper=paper.BEST_SPLIT,
                        digits=3,
                    ),
                ),
            ),
            Claim(
                "Proposition 1 as printed gives lambda* = 0.662",
                "proposition 1, erratum E1",
                (
                    Comparison(
                        "the printed formula", printed_formula, paper=paper.BEST_SPLIT, digits=3
                    ),
                ),
            ),
        ],
        notes=[
            "The rate is 0.7375 bit/s/Hz per segment, at which the corrected formula gives 0.662. "
            "At table "
            f"VI's rate of 1.5 bit/s/Hz it gives {optimal_split((1.5, 1.5))[0]:.3f}.",
            "The closed form is exact to first order in c/P; on the poor channel the numeric "
            f"optimum is {numeric['poor'][0]:.3f}.",
        ],
        figure=split_figure(good.model_copy(update={"split": paper.OTHER_SPLIT}), RATES),
    )


FIG4 = Recipe("fig4", lambda scale: [], show)
