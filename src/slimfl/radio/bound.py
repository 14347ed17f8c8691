"""Section V of the paper: theorem 1's bound, the propositions, and when SlimFL is worth it.

For S segments with decoding probabilities p_i and loss weights w_i, and delta the mean over devices
of the variance of a local gradient,

    E[F(theta_t)] - F* <= (L / mu) (mu L Delta_1 + 2 B) / (mu t + 2 L - mu)

with learning rate 2 / (mu t + 2 L - mu). The paper's B (lemma 1, for any S) is S^2 delta (sum
1/p_i) (sum w_i^2). Segments are disjoint, so their squared norms simply add, and the noise of
independent devices averages out. This gives B_sharp = (S delta / K) (sum 1/p_i) (sum w_i^2),
smaller by the factor S K.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from slimfl.experiment import RadioSection
from slimfl.radio.channel import Messages
from slimfl.radio.coding import Coding, Floats
from slimfl.radio.link import section_probabilities
from slimfl.radio.signals import signal
from slimfl.radio.splits import inverse_probability_sum as inverse_probability_sum
from slimfl.units import to_db


def paper_constant(delta: float, probabilities: ArrayLike, weights: ArrayLike) -> float:
    """B of lemma 1: 4 delta (1/p_1 + 1/p_2) sum w_i^2 at S = 2.

    Args:
        delta: Mean over devices of the variance of a local gradient.
        probabilities: [segment] p_i.
        weights: [segment] w_i of the losses.
    """
    weights = np.asarray(weights, dtype=np.float64)
    channel_term = inverse_probability_sum(probabilities)
    return float(len(weights) ** 2 * delta * channel_term * (weights**2).sum())


def sharp_constant(
    delta: float, probabilities: ArrayLike, weights: ArrayLike, devices: int
) -> float:
    """B without the slack of erratum E14.

    Args:
        delta: Mean over devices of the variance of a local gradient.
        probabilities: [segment] p_i.
        weights: [segment] w_i of the losses.
        devices: K, how many take part in a round.
    """
    segments = len(np.asarray(weights))
    return paper_constant(delta, probabilities, weights) / (segments * devices)


def tight_constant(
    delta: float, probabilities: ArrayLike, weights: ArrayLike, devices: int
) -> float:
    """The largest possible variance of f_t with K p_i deliveries and one noise for all widths.

    Segment j gets the noise of every width from j on, times W_j = w_j + ... + w_S. The squared
    norms of a noise over the segments add up to its own, so in the worst case it is all in the
    segment with the largest W_j^2 / p_j: (delta / K) max_j W_j^2 / p_j. Arguments are those of
    `sharp_constant`.
    """
    reaching = np.asarray(weights, dtype=np.float64)[::-1].cumsum()[::-1]
    with np.errstate(divide="ignore", over="ignore"):
        worst = (reaching**2 / np.asarray(probabilities, dtype=np.float64)).max()
    return float(delta * worst / devices)


def learning_rate(t: ArrayLike, smoothness: float, strong_convexity: float) -> Floats:
    """Theorem 1's learning rate.

    Args:
        t: Iterations, from 1.
        smoothness: L.
        strong_convexity: mu.
    """
    t = np.asarray(t, dtype=np.float64)
    return np.asarray(2 / (strong_convexity * t + 2 * smoothness - strong_convexity))


def theorem1_bound(
    t: ArrayLike,
    smoothness: float,
    strong_convexity: float,
    initial_distance_squared: float,
    constant: float,
) -> Floats:
    """The right-hand side of theorem 1, equation (10).

    Args:
        t: Iterations, from 1.
        smoothness: L.
        strong_convexity: mu.
        initial_distance_squared: Delta_1, from the optimum.
        constant: B of `paper_constant`, `sharp_constant` or `tight_constant`.
    """
    start = strong_convexity * smoothness * initial_distance_squared
    rate = learning_rate(t, smoothness, strong_convexity) / 2
    return smoothness / strong_convexity * (start + 2 * constant) * rate


def optimal_weights(segments: int) -> tuple[float, ...]:
    """Proposition 2: equal weights minimise sum w_i^2."""
    return (1 / segments,) * segments


#: A channel is extremely good if its bound is within this share of a perfect channel's.
NEGLIGIBLE = 0.05
#: What arrives less than once in the longest run (see `Experiment.rounds`) does not arrive.
MOST_ROUNDS = 10_000_000
#: D of segments and of one message are a tie if they differ by less than this share.
TIE = 0.01


@dataclass(frozen=True)
class Advice:
    """The method that the bound's terms favour on a link, and why."""

    methods: tuple[str, ...]
    """Both methods in a tie, none if nothing arrives."""
    reason: str
    terms: dict[str, float]
    """D of each method over the segments that it delivers."""

    @property
    def method(self) -> str | None:
        """The only preferable method; None if nothing arrives, or in a tie."""
        return self.methods[0] if len(self.methods) == 1 else None

    @property
    def is_tie(self) -> bool:
        """True if neither method is preferable."""
        return len(self.methods) > 1


def smaller_term(segments: float, one_message: float) -> str:
    """Which D is smaller: `segments`, `one-message` or `tie`."""
    smaller = min(segments, one_message)
    if np.isfinite(smaller) and abs(segments - one_message) < TIE * smaller:
        return "tie"
    return "segments" if segments <= one_message else "one-message"


def condition(superposed: ArrayLike, whole: Sequence[float], devices: int) -> str:
    """`nothing`, `poor`, `good` or one of `smaller_term`: the case of `advise` for a link.

    `superposed` has the decoding probability of every segment, `whole` those of the first 1, 2, ...
    segments in one message.
    """
    last, full, count = float(np.asarray(superposed)[-1]), whole[-1], len(whole)
    # no segment arrives more often than the first one by itself
    if devices * MOST_ROUNDS * whole[0] < 1:
        return "nothing"
    if devices * max(last, full) < 1:
        return "poor"
    one_message = inverse_probability_sum([full] * count)
    if one_message <= count * (1 + NEGLIGIBLE):
        return "good"
    return smaller_term(inverse_probability_sum(superposed), one_message)


def widest_that_arrives(whole: Sequence[float], devices: int) -> int:
    """The index of the widest Vanilla FL that arrives once per round; of the narrowest if none."""
    return max((i for i, p in enumerate(whole) if devices * p >= 1), default=0)


def times_the_airtime(section: RadioSection, segments: int) -> int:
    """How many times one message's airtime the segments take.

    Segments in turn at lower power take that of every segment, with no more energy. One message is
    compared with them in the same airtime and with the same energy: at a lower rate and power.
    """
    return segments if section.multiplexing == "orthogonal-energy" else 1


def advise(section: RadioSection, widths: Sequence[float], devices: int) -> Advice:
    """Section V's favourable conditions as a rule on the terms 1/p of the bound.

    * Nothing arrives, by any method, in the longest run there can be: no method.
    * Extremely poor: the last segment reaches the server less than once per round (K p < 1), by
      SlimFL and by Vanilla FL. The bound assumes K p deliveries, so it is void there and its 1/p
      term dominates: the widest Vanilla FL that does arrive is preferable.
    * Extremely good: with everything in one message D is within 5% of S, its value on a perfect
      channel. Nothing is left to gain by superposition: Vanilla FL-1.0x.
    * A tie: D of SlimFL and of one message differ by less than 1%.
    * Otherwise SlimFL, if a split exists for which D is smaller than that of one message. Under the
      outage formula with perfect cancellation one does: one message is the superposition whose
      thresholds are all equal. If the configured split is not such a one, the reason names it.

    Args:
        section: The radio.
        widths: Those of the network, ascending.
        devices: How many take part in a round.
    """
    count = len(widths)
    longer = times_the_airtime(section, count)
    rates = np.asarray(section.spectral_efficiency) / longer
    lower = {
        "spectral_efficiency": tuple(rates.tolist()) if rates.ndim else float(rates),
        "power_dbm": section.power_dbm - to_db(longer),
    }

    def probabilities(messages: Messages, split: str | None = None) -> tuple[Floats, Coding]:
        best = {"split": split, "split_objective": "bound"} if split else {}
        there = section.model_copy(update=best if len(messages) > 1 else best | lower)
        coding = signal(there, messages, count).coding
        return section_probabilities(there, coding), coding

    segments = tuple((i,) for i in range(count))
    superposed, _ = probabilities(segments)
    whole = [float(probabilities((tuple(range(i + 1)),))[0][0]) for i in range(count)]
    names = [f"vanilla-{round(width, 3)}x" for width in widths]
    terms = {"slimfl": inverse_probability_sum(superposed)}
    terms |= {
        name: inverse_probability_sum([p] * (i + 1))
        for i, (name, p) in enumerate(zip(names, whole, strict=True))
    }
    slim, full, last = terms["slimfl"], terms[names[-1]], float(superposed[-1])
    case = condition(superposed, whole, devices)
    if case == "nothing":
        reason = (
            f"nothing arrives on this link: of {devices} devices, the server decodes less than one "
            f"update of the narrowest width in {MOST_ROUNDS:,} rounds; lower the noise, the "
            "distance or the rate, or raise the power"
        )
        return Advice((), reason, terms)
    if case == "poor":
        best = widest_that_arrives(whole, devices)
        reason = (
            f"extremely poor channel: the last segment arrives {devices * last:.2g} times per "
            f"round from {devices} devices, so the bound's term 1/p for it is void or dominates; "
            f"{names[best]} arrives {devices * whole[best]:.2g} times"
        )
        return Advice((names[best],), reason, terms)
    if case == "good":
        reason = (
            f"extremely good channel: the whole model in one message has D = {full:.4g}, and "
            f"{count} is perfect, so superposition has less than {NEGLIGIBLE:.0%} to gain"
        )
        return Advice((names[-1],), reason, terms)
    apart = (
        "superposition has" if section.multiplexing == "superposition" else "segments in turn have"
    )
    same = "" if longer == 1 else " in the same airtime has"
    reason = f"moderately poor channel: {apart} D = {slim:.4g}, one message{same} D = {full:.4g}"
    either = {"segments": ("slimfl",), "one-message": (names[-1],), "tie": ("slimfl", names[-1])}
    if case == "tie":
        reason += f", less than {TIE:.0%} apart"
    if case == "segments":
        return Advice(either[case], reason, terms)
    best_probabilities, best_coding = probabilities(segments, "optimal-numeric")
    best_d = inverse_probability_sum(best_probabilities)
    with_best = smaller_term(best_d, full)
    said = ",".join(f"{share:.3f}" for share in best_coding.split) + f" has D = {best_d:.4g}"
    if case == "tie":
        if with_best == "segments":
            reason += f"; the best split, {said}"
        return Advice(either[case], reason, terms)
    wasted = "even the best split," if with_best != "segments" else "this split wastes power,"
    return Advice(either[with_best], f"{reason}; {wasted} {said}", terms)
