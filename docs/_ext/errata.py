"""The numbers beside the errata, computed from the paper's tables and from the package."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import accumulate
from math import log2, log10
from statistics import fmean, geometric_mean, median

import numpy as np
import torch
from misprints import (
    TABLE_1,
    TABLE_3,
    TABLE_4_BITS,
    TABLE_4_MFLOPS,
    TABLE_4_MILLIWATTS,
    TABLE_4_PARAMETERS,
    TABLE_5_MFLOPS,
    TABLE_5_WATTS,
    TABLE_6,
    TABLE_7,
    algorithm_1_backward,
    algorithm_2_sets,
    appendix_ustrain_backward,
    frequencies,
    printed_split,
    strides_and_paddings,
    vanilla_rounds,
    weight_counts,
)
from scipy.optimize import minimize_scalar
from torch import Tensor, nn

from slimfl.experiment import RadioSection
from slimfl.nn import (
    ULMobileNet,
    at_width,
    cost,
    flatten,
    initialise,
    load_flat,
    segments,
    slimmable,
)
from slimfl.radio import (
    OutageLink,
    Rayleigh,
    Superposition,
    decoding_frequencies,
    noise_to_power,
    optimal_split,
    outage_link,
    signal,
)
from slimfl.radio import bound as theory
from slimfl.rng import generator
from slimfl.training import STEPS, hard_loss, soft_loss

WIDTHS = (0.5, 1.0)
EQUAL = (0.5, 0.5)
DEVICES, ROUNDS = 10, 1000
CHANNELS = ("good", "poor")
#: Half the last digit of table VII, in W and in GFLOPS, either way.
ROUNDING = ((-0.05, -0.005), (-0.05, 0.005), (0.05, -0.005), (0.05, 0.005))


def texts() -> dict[str, str]:
    """The numbers of every erratum that has some."""
    made = (e1, e2, e3, e4, e5, e6, e7, e8, e9, e10, e11, e13, e14)
    return {f"errata-{make.__name__}": "\n".join(make()) for make in made}


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """A MyST table."""
    heads = list(headings)
    lines = [heads, ["---"] * len(heads), *(list(row) for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def _probabilities(section: RadioSection) -> list[float]:
    coding = signal(section, ((0,), (1,)), 2).coding
    return [float(p) for p in outage_link(section).decoding_probabilities(coding)]


def best_share(rate: float, noise: float) -> float:
    """The share of the power at which D of two segments is smallest, by search."""
    link, target = OutageLink(noise, Rayleigh()), 2**rate - 1

    def d(share: float) -> float:
        coding = Superposition((rate, rate), (share, 1 - share))
        return theory.inverse_probability_sum(link.decoding_probabilities(coding))

    lowest = target / (1 + target)
    found = minimize_scalar(d, bounds=(lowest + 1e-3, 1 - 1e-3), options={"xatol": 1e-8})
    return float(found.x)


def e1() -> list[str]:
    """Printed, corrected and searched splits."""
    poor = noise_to_power(RadioSection(channel="poor"))
    rows = []
    for target in (0.3, 0.667, 1.0, 2**1.5 - 1, 3.0):
        rate = log2(1 + target)
        values = (
            printed_split(target),
            optimal_split([rate, rate])[0],
            best_share(rate, 1e-3),
            best_share(rate, poor),
        )
        rows.append([f"{target:.3f}", *(f"{value:.3f}" for value in values)])
    searched = "smallest $D$ by search"
    shares = [power / sum(TABLE_4_MILLIWATTS) for power in TABLE_4_MILLIWATTS]
    return [
        *table(
            [
                "$u'$",
                "printed",
                "corrected",
                f"{searched}, $c/P$ = 0.001",
                f"{searched}, poor channel",
            ],
            rows,
        ),
        "",
        f"Table IV has this value too: its transmission powers, {TABLE_4_MILLIWATTS[0]} and "
        f"{TABLE_4_MILLIWATTS[1]} mW, are the shares {shares[0]:.3f} and {shares[1]:.3f} of 23 "
        "dBm, under the headings 1.0x and 0.5x. LH, which 0.5x needs, gets the larger share.",
    ]


def e2() -> list[str]:
    """How often both segments arrive: by the table, by the thresholds and by the printed lines."""
    rows = []
    for name in CHANNELS:
        section = RadioSection(channel=name)
        p1, p2 = _probabilities(section)
        uniform = generator(0, "errata").random(DEVICES * ROUNDS)
        half, full = algorithm_2_sets(uniform, p1, p2)
        coding = signal(section, ((0,), (1,)), 2).coding
        drawn = decoding_frequencies(outage_link(section), coding, DEVICES * ROUNDS)
        told = frequencies(name)
        arrived = (half | full).mean(), full.mean()
        for what, i in (("LH", 0), ("LH and RH", 1)):
            values = (told[i], drawn[i], arrived[i])
            rows.append([name, what, *(f"{value:.3f}" for value in values)])
    return table(["channel", "arrives", "table VI", "gain and thresholds", "lines 15 to 20"], rows)


def e3() -> list[str]:
    """How often case 2 happens, and what the literal reading does to the network then."""
    p1, p2 = _probabilities(RadioSection(channel="poor"))
    chance = (1 - p2) ** DEVICES - (1 - p1) ** DEVICES
    once = 1 - (1 - chance) ** ROUNDS
    network = ULMobileNet()
    initialise(network, "he", seed=0)
    images = torch.from_numpy(generator(0, "errata").normal(size=(4, 1, 8, 8)).astype(np.float32))
    mask = segments(network, WIDTHS).mask(0.5)
    load_flat(network, flatten(network) * mask)
    with at_width(0.5):
        narrow = network(images)
    full = network(images)
    hard_loss(full, torch.arange(4)).backward()  # type: ignore[no-untyped-call]
    gradient = _gradient(network).numpy()
    return [
        f"On the poor channel with {DEVICES} devices, case 2 occurs in a round with probability "
        f"$(1-p_2)^{{{DEVICES}}} - (1-p_1)^{{{DEVICES}}}$ = {chance:.2g}, so {once:.0%} of the "
        f"runs of {ROUNDS:,} rounds meet it. After it, the logits of 1.0x and 0.5x differ by "
        f"{(full - narrow).abs().max().item():g}, and of the {(~mask).sum():,} weights of RH "
        f"{np.count_nonzero(gradient[~mask]):,} have a gradient (of the {mask.sum():,} of LH: "
        f"{np.count_nonzero(gradient[mask]):,}).",
    ]


def e4() -> list[str]:
    """The weights of table I, layer by layer."""
    full, half = weight_counts(1), weight_counts(2)
    names = [f"{i} × {o} × {k} × {k}" for i, o, k in TABLE_1] + ["64 × 10", "10 biases"]
    full, half = [*full, 10], [*half, 10]
    rows = [[n, f"{f:,}", f"{h:,}"] for n, f, h in zip(names, full, half, strict=True)]
    rows.append(["**sum**", f"**{sum(full):,}**", f"**{sum(half):,}**"])
    narrow, wide = cost(ULMobileNet(), WIDTHS, (1, 28, 28))
    rows.append(["`slimfl cost`", f"{wide.parameters:,}", f"{narrow.parameters:,}"])
    rows.append(["table IV", *(f"{count:,}" for count in TABLE_4_PARAMETERS)])
    bits = TABLE_4_BITS[0] / TABLE_4_PARAMETERS[0]
    return [
        *table(["table I", "1.0x", "0.5x"], rows),
        "",
        f"Table IV's bits do not follow from the parameters either: {TABLE_4_BITS[0]:,} / "
        f"{TABLE_4_PARAMETERS[0]:,} = {bits:.2f} bits per parameter.",
    ]


def e5() -> list[str]:
    """The largest ratio of the two counts, and a search for the printed pair."""
    firsts = [
        f / h
        for f, h in zip(
            accumulate(weight_counts(1)[:-1]), accumulate(weight_counts(2)[:-1]), strict=True
        )
    ]
    narrow, wide = cost(ULMobileNet(), WIDTHS, (1, 28, 28))
    printed = TABLE_4_MFLOPS[0] / TABLE_4_MFLOPS[1]
    least = (TABLE_4_MFLOPS[0] - 0.005) / (TABLE_4_MFLOPS[1] + 0.005)
    pairs = list(strides_and_paddings())
    hits = sum(
        (round(factor * f / 1e6, 2), round(factor * h / 1e6, 2)) == TABLE_4_MFLOPS
        for f, h in pairs
        for factor in (1, 2)
    )
    return [
        f"The first 1, 2, ... 5 layers have {', '.join(f'{ratio:.2f}' for ratio in firsts)} times "
        f"as many weights at 1.0x as at 0.5x. Table IV's ratio is {printed:.2f}, and at least "
        f"{least:.2f} if both counts are rounded. A search over all {len(pairs):,} choices of "
        f"strides 1 to 3 and paddings 0 to 2 on images of 28 by 28, with a multiply-add counted "
        f"as one operation or as two, finds the printed pair {hits} times. Ours: "
        f"{wide.multiply_adds:,} and {narrow.multiply_adds:,} multiply-adds, a ratio of "
        f"{wide.multiply_adds / narrow.multiply_adds:.2f}.",
    ]


def e6() -> list[str]:
    """By how many decibels the rows of table VI differ, column by column."""
    first, second = frequencies("good"), frequencies("poor")
    names = ("SlimFL, LH", "SlimFL, LH and RH", "Vanilla FL-0.5x", "Vanilla FL-1.0x")
    rows = []
    for name, upper, lower in zip(names, first, second, strict=True):
        ratio = np.log(lower) / np.log(upper)
        # the error of a frequency f over n draws is sqrt(f (1 - f) / n), of its logarithm that / f
        parts = [np.sqrt((1 - f) / f / (DEVICES * ROUNDS)) / -np.log(f) for f in (upper, lower)]
        error = 10 / np.log(10) * np.hypot(*parts)
        rows.append(
            [name, f"{upper:.3f}", f"{lower:.3f}", f"{10 * log10(ratio):.1f} ± {error:.1f}"]
        )
    return table(["", "row “-30 dB”", "row “-40 dB”", "more noise in the second, dB"], rows)


def e7() -> list[str]:
    """The difference in MBytes and as shares."""
    slim, _, vanilla = TABLE_6["poor"]
    less, sent = vanilla[1] - slim[2], sum(slim)
    p1, p2 = _probabilities(RadioSection(channel="poor"))
    section = RadioSection(channel="poor")
    [whole] = outage_link(section).decoding_probabilities(signal(section, ((0, 1),), 2).coding)
    ours = sent * ((p1 + p2) / 2 - float(whole))
    return [
        f"Dropped on the poor channel: {vanilla[1]} - {slim[2]} = {less:.2f} MBytes less, which is "
        f"{less / vanilla[1]:.1%} of what Vanilla FL-1.0x drops, or {less / sent:.1%} of the "
        f"{sent:.1f} MBytes sent. Equation (5) gives {ours:.2f} MBytes.",
    ]


def e8() -> list[str]:
    """Savings by table VII, their averages, and the rounds behind them."""
    rows = []
    for (alpha, name), (watts, gflops) in TABLE_7.items():
        narrow, wide = vanilla_rounds(watts[1], gflops[1])
        corners = [vanilla_rounds(watts[1] + w, gflops[1] + g) for w, g in ROUNDING]
        either = [max(abs(c[i] - (narrow, wide)[i]) for c in corners) for i in (0, 1)]
        rows.append(
            [
                alpha,
                name,
                f"{watts[1] / watts[0]:.2f}",
                f"{gflops[1] / gflops[0]:.2f}",
                f"{watts[0] / TABLE_5_WATTS:.0f}",
                f"{1000 * gflops[0] / TABLE_5_MFLOPS:.0f}",
                f"{narrow:.0f} ± {either[0]:.0f}",
                f"{wide:.0f} ± {either[1]:.0f}",
            ]
        )
    averages = []
    for i, name in ((0, "communication"), (1, "computing")):
        pairs = [cell[i] for cell in TABLE_7.values()]
        ratios = [vanilla / slim for slim, vanilla in pairs]
        half_digit = 0.005 if i else 0.05
        # 3.03 and 3.51 have one digit more; a wider margin only makes the largest mean larger
        largest = fmean((v + half_digit) / (s - half_digit) for s, v in pairs)
        totals = sum(v for _, v in pairs) / sum(s for s, _ in pairs)
        values = (fmean(ratios), geometric_mean(ratios), median(ratios), totals, largest)
        averages.append([name, *(f"{value:.2f}" for value in values)])
    return [
        *table(
            [
                "",
                "mean of the ratios",
                "geometric mean",
                "median",
                "ratio of the sums",
                "largest mean that rounds to the table",
            ],
            averages,
        ),
        "",
        *table(
            [
                "$\\alpha$",
                "channel",
                "communication, times",
                "computing, times",
                "$T$ from W",
                "$T$ from GFLOPS",
                "$T_{0.5}$",
                "$T_{1.0}$",
            ],
            rows,
        ),
    ]


def e9() -> list[str]:
    """Points and per cent at alpha = 0.1."""
    methods = ("SlimFL-1.0x", "Vanilla FL-1.0x")
    rows = []
    for name in CHANNELS:
        ours, theirs = (TABLE_3[name][method][0][0] for method in methods)
        ahead = ours - theirs
        rows.append([name, f"{ours}", f"{theirs}", f"{ahead:+d}", f"{ahead / theirs:+.0%}"])
    headings = ["channel", *(f"{method}, %" for method in methods), "points", "relative"]
    growth = {
        method: max(
            poor[1] / good[1] - 1
            for good, poor in zip(TABLE_3["good"][method], TABLE_3["poor"][method], strict=True)
        )
        for method in TABLE_3["good"]
    }
    return [
        *table(headings, rows),
        "",
        "The next sentence of the paper, that the deviation grows by “up to 59%” for Vanilla "
        "FL-1.0x and by “only up to 31%” for SlimFL, does not fit table III either. From the good "
        "to the poor channel it grows by up to "
        + ", ".join(f"{value:.0%} for {method}" for method, value in growth.items())
        + ".",
    ]


def e10() -> list[str]:
    """What table VII and table III say about the second definition."""
    slim = [cell[0][0] / TABLE_5_WATTS for cell in TABLE_7.values()]
    least = min(slim)
    best = max(row[0][0] for rows in TABLE_3.values() for row in rows.values())
    return [
        f"Table VII does not follow from the second definition alone. Its smallest cost is that of "
        f"{least:.0f} rounds, fewer than the 100 of a window, so the paper counts up to the "
        f"*first* round of the window. Also, at $\\alpha = 0.1$ no accuracy in table III is above "
        f"{best}%, so no mean is above 80%; yet table VII has costs until convergence there "
        f"({slim[0]:.0f} and {slim[1]:.0f} rounds of SlimFL).",
    ]


def e11() -> list[str]:
    """The factors of the two gradients in what each reading gives the optimiser."""
    network, images, labels = _small_network()
    forward = _forward(network, images)
    parts = []
    for i in (1, 0):
        network.zero_grad()
        teacher = forward(1)
        loss = hard_loss(teacher, labels) if i else soft_loss(forward(0), teacher)
        loss.backward()  # type: ignore[no-untyped-call]
        parts.append(_gradient(network))
    network.zero_grad()
    algorithm_1_backward(forward, labels, EQUAL)
    literal = _gradient(network)

    def update(loss: Tensor) -> None:
        network.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]

    STEPS["sustrain"](forward, labels, [0, 1], EQUAL, update)
    rows = []
    for name, found in (("algorithm 1", literal), ("`sustrain`", _gradient(network))):
        full, narrow = torch.linalg.lstsq(torch.stack(parts, 1), found[:, None]).solution[:, 0]
        share = narrow / (full + narrow)
        rows.append([name, f"{full:.2f}", f"{narrow:.2f}", f"{share:.0%}"])
    return table(["", "$\\nabla F$", "$\\nabla \\hat{F}$", "share of the narrower width"], rows)


def e13(steps: int = 20) -> list[str]:
    """How far the readings of USTrain end up from SUSTrain under Adam."""
    ends = {}
    for name in ("sustrain", "appendix", "ustrain"):
        network, images, labels = _small_network()
        start = _values(network)
        forward = _forward(network, images)
        adam = torch.optim.Adam(network.parameters(), lr=1e-3)

        def update(loss: Tensor, adam: torch.optim.Adam = adam) -> None:
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()

        for _ in range(steps):
            if name == "appendix":
                adam.zero_grad()
                appendix_ustrain_backward(forward, labels)
                adam.step()
            else:
                STEPS[name](forward, labels, [0, 1], EQUAL, update)
        ends[name] = _values(network) - start
    ours = ends["sustrain"]
    length = ours.norm()
    apart = {name: (end - ours).norm() / length for name, end in ends.items()}
    return [
        f"After {steps} steps of Adam from the same start, on the same batch, the distance from "
        f"SUSTrain, relative to the distance that SUSTrain has moved, is {apart['appendix']:.0e} "
        f"for the appendix's USTrain and {apart['ustrain']:.0%} for the text's (in double "
        "precision).",
    ]


def measured_variance(
    probabilities: list[float], devices: int, size: int = 16, draws: int = 20_000
) -> float:
    """E |f - mean f|^2 of lemma 1 with independent unit noise on every device (delta = 1)."""
    random = generator(0, "errata-variance")
    noise = random.normal(size=(draws, devices, size)) / np.sqrt(size)
    narrow = np.arange(size) < size // 2
    # both widths see the same noise: w_1 x on the narrow part, w_2 x everywhere
    gradient = noise * (EQUAL[0] * narrow + EQUAL[1])
    gain = random.exponential(size=(draws, devices, 1))
    first, both = (gain >= -np.log(p) for p in probabilities)
    arrived = np.where(narrow, first / probabilities[0], both / probabilities[1])
    total = (gradient * arrived).sum(axis=1) / devices
    return float((total**2).sum(axis=1).mean())


def e14() -> list[str]:
    """Both constants and a measurement."""
    probabilities = _probabilities(RadioSection(channel="poor"))
    paper = theory.paper_constant(1.0, probabilities, EQUAL)
    sharp = theory.sharp_constant(1.0, probabilities, EQUAL, DEVICES)
    rows = [
        ["$B$, lemma 1", f"{paper:.3f}"],
        ["$B_{sharp}$", f"{sharp:.3f}"],
        ["measured, 20,000 draws", f"{measured_variance(probabilities, DEVICES):.3f}"],
    ]
    return [
        f"{DEVICES} devices with independent noise, $\\delta = 1$, equal weights, poor channel. "
        f"The two constants differ by the factor $S K$ = {paper / sharp:.0f}:",
        "",
        *table(["$E \\| f_t - \\bar{f}_t \\|^2$", ""], rows),
    ]


def _small_network() -> tuple[nn.Module, Tensor, Tensor]:
    """A smooth network with a batch, in double precision."""
    random = generator(0, "errata-batch")
    layers = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.Tanh(), nn.Conv2d(8, 8, 1), nn.Tanh(), nn.Flatten(), nn.Linear(72, 3)
    )
    network = slimmable(layers)
    initialise(network, "xavier", seed=0)
    images = torch.from_numpy(random.normal(size=(16, 1, 5, 5)))
    return network.double(), images, torch.from_numpy(random.integers(0, 3, 16))


def _forward(network: nn.Module, images: Tensor) -> Callable[[int], Tensor]:
    def forward(i: int) -> Tensor:
        with at_width(WIDTHS[i]):
            logits: Tensor = network(images)
        return logits

    return forward


def _values(network: nn.Module) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in network.parameters()])


def _gradient(network: nn.Module) -> Tensor:
    grads = [p.grad for p in network.parameters() if p.grad is not None]
    return torch.cat([grad.reshape(-1) for grad in grads])
