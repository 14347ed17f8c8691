"""What theory says should arrive, by the channel of the run: equation (5) in the paper's case."""

from functools import partial

import numpy as np

from slimfl.config import Experiment
from slimfl.methods import Method
from slimfl.population import Population
from slimfl.radio import Channel, Messages, heard_probabilities, signal
from slimfl.rng import generator

#: Of a larger population, this many devices stand for all.
DEVICES_ASKED = 10_000


def expected_shares(
    experiment: Experiment,
    method: Method,
    channel: Channel,
    population: Population,
    segment_bits: tuple[float, ...] = (),
) -> list[float] | None:
    """The expected delivered share of every segment, in the first round and per asked device.

    None where the channel has no closed form, or devices measure their gains. A device that does
    not answer delivers nothing, so dropout and a lost downlink count against every segment.
    """
    if experiment.radio.gains == "measured":
        return None
    segments = len(experiment.model.widths)
    if len(population) > DEVICES_ASKED:
        chosen = np.linspace(0, len(population) - 1, DEVICES_ASKED).astype(np.int64)
        population = population.take(chosen)
    alike: dict[Messages, list[int]] = {}
    for row, device in enumerate(population):
        random = partial(generator, experiment.seed, "assignment", 1, device.id)
        assignment = method.assign(device, 1, random)
        if assignment is not None:
            alike.setdefault(assignment.messages, []).append(row)
    shares = np.zeros(segments)
    hears = np.ones(len(population))
    if experiment.radio.downlink == "lossy":
        known = heard_probabilities(experiment.radio, channel, population)
        if known is None:
            return None
        hears = known
    for messages, rows in alike.items():
        sent = signal(experiment.radio, messages, segments, segment_bits)
        probabilities = channel.probabilities(population.take(rows), sent)
        if probabilities is None:
            return None
        for message, column in zip(messages, np.asarray(probabilities).T, strict=True):
            shares[list(message)] += (column * hears[rows]).sum() / len(population)
    expected: list[float] = (shares * (1 - experiment.federation.dropout)).tolist()
    return expected
