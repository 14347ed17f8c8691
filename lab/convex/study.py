"""Theorem 1 and the propositions against measurements on the convex problem.

    python -m lab.convex.study small docs/results/convex.json

measures, in this order: the gap and both bounds; the split and the weights with the smallest
variance; the cost of different devices; and what happens to the theorem if its assumptions fail.
Everything is deterministic.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from lab.convex.problem import Aggregation, ConvexProblem, Floats, measure_gap, ridge_problem
from lab.convex.variance import deliveries, exact_variance, sampled_variance
from lab.scale import ConvexScale as Scale
from lab.scale import convex_scale
from slimfl.experiment import CHANNELS, RadioSection
from slimfl.radio import (
    Coding,
    OutageLink,
    Superposition,
    optimal_split,
    optimal_split_numeric,
    outage_link,
    signal,
)
from slimfl.radio.bound import (
    optimal_weights,
    paper_constant,
    sharp_constant,
    theorem1_bound,
    tight_constant,
)

DEVICES = 10
#: On the extreme channel, the second segment arrives from 10 devices 0.26 times per round.
STUDY_CHANNELS = CHANNELS | {"extreme": -31.0}
#: All segments together have as many bits as the paper's two; more segments are smaller.
TOTAL_EFFICIENCY = 3.0
EQUAL = (0.5, 0.5)
#: With these shares the noise in g^k is the same in both segments, the worst case of lemma 1.
LEVEL_SHARES = (0.2, 0.8)


def study(scale: str = "small", seed: int = 0) -> dict[str, Any]:
    """The whole study as plain data."""
    size = convex_scale(scale)
    parts = (bounds, lemma_1, split, weights, selection, counts, aggregation, noiseless,
             at_optimum, curvature)  # fmt: skip
    document: dict[str, Any] = _plain(
        {
            "scale": scale,
            **size.model_dump(exclude={"name"}),
            "seed": seed,
            "devices": DEVICES,
            "noise_dbm": STUDY_CHANNELS,
            **{part.__name__: part(size, seed) for part in parts},
        }
    )
    return document


def link(noise_dbm: float, segments: int) -> tuple[OutageLink, Coding]:
    """The channel, and all segments superposed on it."""
    rate = TOTAL_EFFICIENCY / segments
    section = RadioSection(noise_dbm=noise_dbm, spectral_efficiency=rate, rates="equal")
    messages = tuple((i,) for i in range(segments))
    return outage_link(section), signal(section, messages, segments).coding


def rounds_to_show(last: int, count: int = 30) -> list[int]:
    """1 to `last`, evenly on a logarithmic axis."""
    spaced: list[int] = np.unique(np.geomspace(1, last, count).round().astype(int)).tolist()
    return spaced


def against_bounds(
    problem: ConvexProblem,
    radio: tuple[OutageLink, Coding],
    rounds: Sequence[int],
    repetitions: int,
    seed: int = 0,
    aggregation: Aggregation = "delivered",
) -> dict[str, Any]:
    """The measured gap, the paper's bound and the sharper one.

    `share_of_*` is the largest ratio of the measured mean to the bound over the rounds: the bound
    holds if it is at most 1. Nine of ten repetitions lie between `low` and `high`.
    """
    gaps = measure_gap(problem, *radio, rounds, repetitions, seed, aggregation)
    mean = gaps.mean(0)
    probabilities = radio[0].decoding_probabilities(radio[1])
    constants = {
        "paper": paper_constant(problem.delta, probabilities, problem.weights),
        "sharp": sharp_constant(problem.delta, probabilities, problem.weights, problem.devices),
    }
    curves = {name: theorem1(problem, rounds, constant) for name, constant in constants.items()}
    low, high = np.quantile(gaps, [0.05, 0.95], axis=0)
    error = gaps.std(0, ddof=1) / np.sqrt(repetitions) if repetitions > 1 else np.zeros(len(mean))
    return {
        "probabilities": probabilities,
        "smoothness": problem.smoothness,
        "strong_convexity": problem.strong_convexity,
        "delta": problem.delta,
        "initial_distance_squared": problem.initial_distance_squared,
        "B": constants,
        "round": list(rounds),
        "bound_paper": curves["paper"],
        "bound_sharp": curves["sharp"],
        "measured": mean,
        "standard_error": error,
        "low": low,
        "high": high,
        "share_of_paper": (mean / curves["paper"]).max(),
        "share_of_sharp": (mean / curves["sharp"]).max(),
        "last_share_of_paper": mean[-1] / curves["paper"][-1],
        "last_share_of_sharp": mean[-1] / curves["sharp"][-1],
    }


def theorem1(problem: ConvexProblem, rounds: Sequence[int], constant: float) -> Floats:
    """Equation (10) with the constants of a problem."""
    return theorem1_bound(rounds, problem.smoothness, problem.strong_convexity,
                 problem.initial_distance_squared, constant)  # fmt: skip


def settings(
    numbers: Sequence[int] = (2,),
) -> Iterator[tuple[dict[str, Any], OutageLink, Coding, Floats]]:
    """Every channel with some numbers of segments: its words, the link, and what it delivers."""
    for segments in numbers:
        for name, noise_dbm in STUDY_CHANNELS.items():
            radio, coding = link(noise_dbm, segments)
            words = {"segments": segments, "channel": name}
            yield words, radio, coding, radio.decoding_probabilities(coding)


def gaps(
    problem: ConvexProblem,
    radio: OutageLink,
    coding: Coding,
    scale: Scale,
    seed: int,
    aggregation: Aggregation = "delivered",
    first: int = 0,
) -> dict[str, Any]:
    """The gap and the bounds over all rounds of a scale, without the first ones."""
    shown = rounds_to_show(scale.rounds)[first:]
    return against_bounds(problem, (radio, coding), shown, scale.repetitions, seed, aggregation)


def bounds(scale: Scale, seed: int) -> list[dict[str, Any]]:
    """The gap and the bounds, for two and four segments over all channels."""
    rows = []
    for words, radio, coding, _ in settings((2, 4)):
        for non_iid in (0.0, 1.0):
            best = optimal_weights(words["segments"])
            problem = ridge_problem(best, DEVICES, non_iid, seed=seed)
            rows.append({**words, "non_iid": non_iid, **gaps(problem, radio, coding, scale, seed)})
    return rows


def lemma_1(scale: Scale, seed: int) -> list[dict[str, Any]]:
    """The variance from sampling noise with IID data, and the constants that bound it."""
    rows = []
    for words, radio, coding, reach in settings((2, 4)):
        problem = ridge_problem(optimal_weights(words["segments"]), DEVICES, seed=seed)
        told = sampled_variance(problem, problem.optimum, radio, coding, scale.draws, seed)
        rows.append({
            **words,
            "measured": told.noise.sum(),
            "exact": exact_variance(problem, problem.optimum, reach).noise.sum(),
            "tight": tight_constant(1.0, reach, problem.weights, DEVICES),
            "sharp": sharp_constant(1.0, reach, problem.weights, DEVICES),
            "paper": paper_constant(1.0, reach, problem.weights),
        })  # fmt: skip
    return rows


def split(scale: Scale, seed: int) -> dict[str, Any]:
    """Proposition 1: variance and late gap against lambda, on the poor channel with IID data.

    Lemma 1 gives 1/p_1 and 1/p_2 the same weight. That is right if the noise of g^k is the same in
    all segments. Isotropic noise is larger in segment 1, which every width trains.
    """
    radio, coding = link(STUDY_CHANNELS["poor"], 2)
    rates = coding.spectral_efficiencies
    shares = np.arange(0.68, 0.9001, 0.01)
    codings = [Superposition(rates, (share, 1 - share)) for share in shares.tolist()]
    reach = np.array([radio.decoding_probabilities(each) for each in codings])
    found: dict[str, Any] = {
        "lambda": shares,
        "D": (1 / reach).sum(1),
        "proposition_1": optimal_split(rates)[0],
        "proposition_1_numeric": optimal_split_numeric(rates, radio.noise_to_power)[0],
    }
    late = np.linspace(scale.rounds / 2, scale.rounds, 20).astype(int).tolist()
    for name, noise_shares in (("level", LEVEL_SHARES), ("isotropic", None)):
        problem = ridge_problem(EQUAL, DEVICES, seed=seed, noise_shares=noise_shares)
        exact = [exact_variance(problem, problem.optimum, p).noise.sum() for p in reach]
        measured = [
            sampled_variance(problem, problem.optimum, radio, each, scale.draws, seed).noise.sum()
            for each in codings
        ]
        gaps = [
            float((measure_gap(problem, radio, each, late, scale.repetitions, seed) * late).mean())
            for each in codings
        ]
        found[name] = {
            "noise_shares": problem.noise_shares,
            "exact": exact,
            "variance": measured,
            "gap_times_round": gaps,
            "best_exact": lowest(shares, exact),
            "best_by_variance": lowest(shares, measured),
            "best_by_gap": lowest(shares, gaps),
        }
    return found


def weights(scale: Scale, seed: int) -> dict[str, Any]:
    """Proposition 2: variance, bound and late gap against w_1, on the poor channel with IID data.

    The bound is computed twice: with the constants of w_1 = 1/2 for all weights, as in the
    proposition, and with those of each w_1, because F, and with it mu, depends on the weights.
    """
    radio, coding = link(STUDY_CHANNELS["poor"], 2)
    probabilities = radio.decoding_probabilities(coding)
    grid = np.arange(0.05, 0.951, 0.05)
    pairs = [(first, 1 - first) for first in grid.tolist()]
    own = [ridge_problem(pair, DEVICES, seed=seed) for pair in pairs]
    reference = ridge_problem(EQUAL, DEVICES, seed=seed)
    last = [scale.rounds]

    def variances(shared: bool) -> Floats:
        rows = []
        for pair in pairs:
            problem = ridge_problem(pair, DEVICES, seed=seed, shared_noise=shared)
            told = sampled_variance(problem, problem.optimum, radio, coding, scale.draws, seed)
            rows.append(told.noise)
        return np.array(rows)

    shared, independent = variances(True), variances(False)
    constants = [paper_constant(1.0, probabilities, pair) for pair in pairs]
    curves = {
        "bound": [theorem1(reference, last, b)[0] for b in constants],
        "bound_own_constants": [
            theorem1(problem, last, b)[0] for problem, b in zip(own, constants, strict=True)
        ],
        "variance_shared_noise": shared.sum(1),
        "variance_independent_noise": independent.sum(1),
        "variance_independent_noise_segment_1": independent[:, 0],
        "gap": [
            measure_gap(problem, radio, coding, last, scale.repetitions, seed).mean()
            for problem in own
        ],
    }
    return {
        "w_1": grid,
        "proposition_2": optimal_weights(2)[0],
        **curves,
        "strong_convexity": [problem.strong_convexity for problem in own],
        "best": {name: lowest(grid, values) for name, values in curves.items()},
    }


def selection(scale: Scale, seed: int) -> list[dict[str, Any]]:
    """The variance from the selection of decoded devices at the optimum, against non-IIDness."""
    rows = []
    for words, radio, coding, reach in settings():
        for non_iid in (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0):
            problem = ridge_problem(EQUAL, DEVICES, non_iid, seed=seed)
            local = problem.gradients(problem.optimum[None])[0]
            exact = exact_variance(problem, problem.optimum, reach)
            measured = sampled_variance(problem, problem.optimum, radio, coding, scale.draws, seed)
            sharp = sharp_constant(problem.delta, reach, EQUAL, DEVICES)
            told = gaps(problem, radio, coding, scale, seed)
            rows.append({
                "channel": words["channel"],
                "non_iid": non_iid,
                "gradient_spread": (local**2).sum(1).mean(),
                "noise": measured.noise.sum(),
                "noise_exact": exact.noise.sum(),
                "selection": measured.selection.sum(),
                "selection_exact": exact.selection.sum(),
                "selection_to_noise": exact.selection.sum() / exact.noise.sum(),
                "total_to_sharp": exact.total / sharp,
                "total_to_paper": exact.total / (sharp * 2 * DEVICES),
                **_some(told, "last_share_of_sharp", "share_of_sharp", "share_of_paper"),
            })  # fmt: skip
    return rows


def counts(scale: Scale, seed: int) -> list[dict[str, Any]]:
    """The difference between the number of delivering devices and the K p of the proof."""
    rows = []
    for words, _, _, reach in settings((2, 4)):
        moments = deliveries(reach, DEVICES)
        rows.append({
            **words,
            "probabilities": reach,
            "expected": DEVICES * reach,
            "nobody": moments.nobody,
            "noise_to_assumed": moments.inverse * DEVICES * reach,
        })  # fmt: skip
    return rows


def aggregation(scale: Scale, seed: int) -> list[dict[str, Any]]:
    """The three readings of the server's average, and the bounds."""
    problem = ridge_problem(EQUAL, DEVICES, seed=seed)
    rows = []
    for words, radio, coding, _ in settings():
        for reading in get_args(Aggregation):
            told = gaps(problem, radio, coding, scale, seed, reading)
            rows.append({
                "channel": words["channel"],
                "aggregation": reading,
                "first_gap": told["measured"][0],
                "last_gap": told["measured"][-1],
                **_some(told, "share_of_paper", "share_of_sharp", "last_share_of_paper"),
            })  # fmt: skip
    return rows


def noiseless(scale: Scale, seed: int) -> list[dict[str, Any]]:
    """Full local gradients (delta = 0, so B = 0) over worse and worse channels, IID data."""
    problem = ridge_problem(EQUAL, DEVICES, delta=0.0, seed=seed)
    rows = []
    for noise_dbm in (-40.0, -33.0, -31.0, -30.0, -29.0, -28.0):
        told = gaps(problem, *link(noise_dbm, 2), scale, seed)
        last = told["probabilities"][-1:]
        rows.append({
            "noise_dbm": noise_dbm,
            "expected_last": DEVICES * last[0],
            "somebody_last": 1 - deliveries(last, DEVICES).nobody[0],
            "last_gap": told["measured"][-1],
            "bound": told["bound_paper"][-1],
            **_some(told, "last_share_of_paper", "share_of_paper"),
        })  # fmt: skip
    return rows


def at_optimum(scale: Scale, seed: int) -> list[dict[str, Any]]:
    """Training that starts at theta*, on non-IID data, with less and less sampling noise.

    Delta_1 = 0 and B goes to 0 with delta, so theorem 1 says that the gap stays at zero; which
    devices are decoded moves the model nevertheless.
    """
    rows = []
    for words, radio, coding, _ in settings():
        for delta in (1.0, 0.01, 0.0001):
            problem = ridge_problem(EQUAL, DEVICES, 1.0, delta, seed, at_optimum=True)
            told = gaps(problem, radio, coding, scale, seed, first=1)
            rows.append({
                "channel": words["channel"],
                "delta": delta,
                "last_gap": told["measured"][-1],
                **_some(told, "last_share_of_paper", "last_share_of_sharp"),
            })  # fmt: skip
    return rows


def curvature(scale: Scale, seed: int) -> list[dict[str, Any]]:
    """mu of every F^k and of F: only the widest width contributes to F in the last segment."""
    rows = []
    for segments in (1, 2, 4):
        problem = ridge_problem(optimal_weights(segments), DEVICES, seed=seed)
        rows.append({
            "segments": segments,
            "strong_convexity_local": np.linalg.eigvalsh(problem.local_hessians).min(),
            "strong_convexity": np.linalg.eigvalsh(problem.hessian).min(),
            "smoothness": problem.smoothness,
        })  # fmt: skip
    return rows


def _some(told: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: told[key] for key in keys}


def lowest(places: Floats, values: Sequence[float] | Floats) -> float:
    """The minimum of a measured curve: of a parabola through its lowest part, or at an end."""
    heights = np.asarray(values, np.float64)
    index = int(heights.argmin())
    if index in (0, len(heights) - 1):
        return float(places[index])
    near = slice(max(0, index - 4), index + 5)
    square, line, _ = np.polyfit(places[near], heights[near], 2)
    return float(np.clip(-line / (2 * square), places[near][0], places[near][-1]))


def _plain(value: Any) -> Any:
    """Python's own types, with numbers rounded to six digits."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(inner) for inner in value]
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.6g}") if abs(float(value)) > 1e-15 else 0.0
    return int(value) if isinstance(value, np.integer) else value


def main(scale: str, out: Path) -> None:
    """Write the study as JSON, with the command that made it."""
    document = {
        "command": f"python -m lab.convex.study {scale} {out}",
        **study(scale),
    }
    out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
