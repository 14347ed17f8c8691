"""The share of segments expected to arrive over the run's channel: equation (5) for the paper's."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from slimfl.config import Experiment
from slimfl.errors import RequestError
from slimfl.methods import Method
from slimfl.population import Population
from slimfl.radio import Channel, SignalMaker, heard_probabilities
from slimfl.rng import generator

Floats = NDArray[np.float64]

#: A larger population is represented by this many of its devices.
DEVICES_ASKED = 10_000


def mean_noise_to_power(channel: Channel, population: Population) -> Floats:
    """c / P of every device, from a channel that knows it."""
    known = getattr(channel, "noise_to_power", None)
    if known is None:
        raise RequestError(
            'radio.split = "per-device" is set from c / P, and this channel has no method '
            "noise_to_power(devices) that says it; give it one, or a split for all"
        )
    return np.asarray(known(population), np.float64)


def delivery_probabilities(
    experiment: Experiment,
    method: Method,
    channel: Channel,
    population: Population,
    signals: SignalMaker | None = None,
) -> Floats | None:
    """[device, segment]: how often each segment of an asked device arrives, in the first round.

    None where the channel has no closed form, devices measure their gains, or the split is learned
    or follows a line of sight that is drawn. A device that cannot be reached delivers nothing;
    `federation.dropout` is not included.
    """
    if experiment.radio.gains == "measured" or experiment.radio.split == "learned":
        return None
    segments = len(experiment.model.widths)
    maker = signals or SignalMaker(experiment.radio, segments)
    ratios = np.ones(len(population))
    if maker.per_device:
        urban = experiment.radio.path_loss in ("umi", "uma")
        if urban and experiment.radio.line_of_sight == "drawn":
            return None  # a device splits its power by whether it is in line of sight
        ratios = mean_noise_to_power(channel, population)
    rows, messages = [], []
    for row, device in enumerate(population):
        random = partial(generator, experiment.seed, "assignment", 1, device.id)
        assignment = method.assign(device, 1, random)
        if assignment is not None:
            rows.append(row)
            messages.append(assignment.messages)
    sent = maker.signals(messages, ratios[rows])
    alike: dict[int, list[int]] = {}
    for row, each in zip(rows, sent, strict=True):
        alike.setdefault(id(each), []).append(row)
    if len(alike) > 1 and experiment.radio.users_per_slot > 1:
        return None  # what arrives depends on how the partner sends
    by_id = {id(each): each for each in sent}
    table = np.zeros((len(population), segments))
    for key, members in alike.items():
        probabilities = channel.probabilities(population.take(members), by_id[key])
        if probabilities is None:
            return None
        for message, column in zip(by_id[key].messages, np.asarray(probabilities).T, strict=True):
            for segment in message:
                table[members, segment] = column
    table *= population.availability[:, None]
    if experiment.radio.downlink_missed == "own-model":
        return table  # who misses the global model sends all the same
    hears = heard_probabilities(experiment.radio, channel, population)
    return None if hears is None else table * hears[:, None]


def expected_shares(
    experiment: Experiment,
    method: Method,
    channel: Channel,
    population: Population,
    signals: SignalMaker | None = None,
) -> list[float] | None:
    """The expected delivered share of every segment in the first round, per asked device.

    A device that does not answer delivers nothing, so dropout and a lost downlink count against
    every segment.
    """
    if len(population) > DEVICES_ASKED:
        chosen = np.linspace(0, len(population) - 1, DEVICES_ASKED).astype(np.int64)
        population = population.take(chosen)
    table = delivery_probabilities(experiment, method, channel, population, signals)
    if table is None:
        return None
    shares = np.array([column.sum() / len(population) for column in table.T])
    expected: list[float] = (shares * (1 - experiment.federation.dropout)).tolist()
    return expected
