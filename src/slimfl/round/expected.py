"""The share of segments expected to arrive over the run's channel: equation (5) for the paper's.

Expected and measured shares have the same denominator: the devices that the method gives work, and
those that were asked and did not answer. Where no formula covers all that decides what arrives,
nothing is expected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from slimfl import nn  # imports torch only for networks whose sizes are not known
from slimfl.data import load_section
from slimfl.devices import Population, population_of, widest_widths
from slimfl.devices.participation import round_half_up
from slimfl.errors import RequestError
from slimfl.experiment import Experiment, RadioSection
from slimfl.methods import Method
from slimfl.methods import method as method_by_name
from slimfl.radio import (
    Channel,
    Messages,
    SignalMaker,
    build_channel,
    heard_probabilities,
    paper_network_sizes,
    segment_bits,
)
from slimfl.rng import generator

Floats = NDArray[np.float64]

#: A larger population is represented by this many of its devices.
DEVICES_ASKED = 10_000

#: The modes in which a round can end before all uploads do.
CUT_OFF = ("deadline", "first", "over-commit")


def mean_noise_to_power(channel: Channel, population: Population) -> Floats:
    """c / P of every device, from a channel that knows it."""
    known = getattr(channel, "noise_to_power", None)
    if known is None:
        raise RequestError(
            'radio.split = "per-device" is set from c / P, and this channel has no method '
            "noise_to_power(devices) that says it; give it one, or a split for all"
        )
    return np.asarray(known(population), np.float64)


def has_formula(experiment: Experiment) -> bool:
    """False if the description alone says that there is no formula for what arrives.

    The cases: measured gains and learned splits; rounds that cut devices off; splits per device
    where a line of sight is drawn, as every device then has one of two splits; and pairs if one
    device may be left without a partner.
    """
    radio, federation = experiment.radio, experiment.federation
    if radio.gains == "measured" or radio.split == "learned":
        return False
    if experiment.time.mode in CUT_OFF:
        return False
    drawn = radio.path_loss in ("umi", "uma") and radio.line_of_sight == "drawn"
    if drawn and radio.split_for_each_device:
        return False
    if radio.users_per_slot == 1:
        return True
    asked = max(1, round_half_up(federation.participation * federation.devices))
    all_hear = radio.downlink == "perfect" or radio.downlink_missed == "own-model"
    together = experiment.time.mode != "asynchronous" and all_hear and not federation.dropout
    return together and asked % 2 == 0


@dataclass(frozen=True, eq=False)
class _Delivery:
    """What becomes of a request to each device."""

    given: Floats
    """The share of rounds in which the method gives it work."""
    reached: Floats
    """The probability that it can be reached and decodes the global model."""
    arrives: Floats
    """[device, segment]: the probability that it gets work and, if reached, delivers."""


def delivery_probabilities(
    experiment: Experiment,
    method: Method,
    channel: Channel,
    population: Population,
    signals: SignalMaker | None = None,
) -> Floats | None:
    """[device, segment]: how often each segment of an asked device arrives.

    None where there is no formula. A device that cannot be reached or gets no work delivers
    nothing; `federation.dropout` and batteries that run empty are not included.
    """
    found = _delivery(experiment, method, channel, population, signals)
    return None if found is None else found.arrives * found.reached[:, None]


def expected_shares(
    experiment: Experiment,
    method: Method,
    channel: Channel,
    population: Population,
    signals: SignalMaker | None = None,
) -> list[float] | None:
    """The expected delivered share of every segment, per asked device.

    A device that does not answer delivers nothing, so dropout and a lost downlink count against
    every segment. A device that answers and gets no work does not count as asked. None where there
    is no formula: also with batteries, which may run empty, and with widths that grow, as it is not
    known how far the run will come.
    """
    if np.isfinite(population.battery_j).any() or experiment.population.width == "growing":
        return None
    if len(population) > DEVICES_ASKED:
        chosen = np.linspace(0, len(population) - 1, DEVICES_ASKED).astype(np.int64)
        population = population.take(chosen)
    found = _delivery(experiment, method, channel, population, signals)
    if found is None:
        return None
    answers = 1 - experiment.federation.dropout
    table = found.arrives * found.reached[:, None]
    asked: float = len(population)
    if (found.given < 1).any():
        unable = 1 - found.given
        asked -= float((unable * found.reached * answers).sum())
    if experiment.time.mode == "asynchronous":
        # a task is only begun by a device that can do it, and fast devices begin more of them
        able = found.given > 0
        per_task = table[able] / found.given[able, None]
        if not np.allclose(per_task, per_task[:1], rtol=1e-9, atol=0):
            return None
        asked = float(found.given.sum())
    if not asked:
        return [0.0] * table.shape[1]
    shares = np.array([column.sum() / asked for column in table.T])
    expected: list[float] = (shares * answers).tolist()
    return expected


def _delivery(
    experiment: Experiment,
    method: Method,
    channel: Channel,
    population: Population,
    signals: SignalMaker | None,
) -> _Delivery | None:
    """None where there is no formula."""
    widths = _width_shares(experiment, population)
    if widths is None or not has_formula(experiment):
        return None
    maker = signals or SignalMaker(experiment.radio, len(experiment.model.widths))
    ratios = np.ones(len(population))
    if maker.per_device:
        ratios = mean_noise_to_power(channel, population)
    rows, shares, messages = _messages(experiment, method, population, widths)
    sent = maker.signals(messages, ratios[rows])
    alike: dict[int, list[int]] = {}
    for number, each in enumerate(sent):
        alike.setdefault(id(each), []).append(number)
    given = np.zeros(len(population))
    np.add.at(given, rows, shares)
    if experiment.radio.users_per_slot > 1 and (
        len(alike) > 1 or (given < 1).any() or _may_be_missing(population)
    ):
        return None  # what arrives depends on how the partner sends, and if there is one
    arrives = np.zeros(widths.shape)
    for numbers in alike.values():
        signal, members = sent[numbers[0]], rows[numbers]
        probabilities = channel.probabilities(population.take(members), signal)
        if probabilities is None:
            return None
        for message, column in zip(signal.messages, np.asarray(probabilities).T, strict=True):
            for segment in message:
                np.add.at(arrives[:, segment], members, shares[numbers] * column)
    reached = np.asarray(population.availability, np.float64)
    if experiment.radio.downlink_missed != "own-model":  # there, who misses the model sends as well
        hears = heard_probabilities(experiment.radio, channel, population)
        if hears is None:
            return None
        reached = reached * hears
    return _Delivery(given, reached, arrives)


def _messages(
    experiment: Experiment, method: Method, population: Population, widths: Floats
) -> tuple[NDArray[np.int64], Floats, list[Messages]]:
    """What devices send at each of their widths: rows, shares of the rounds, and messages."""
    rows: list[int] = []
    shares: list[float] = []
    messages: list[Messages] = []
    for width, column in enumerate(widths.T):
        able = np.flatnonzero(column > 0)
        limited = replace(population.take(able), max_width=np.full(len(able), width, np.int64))
        for row, device in zip(able.tolist(), limited, strict=True):
            random = partial(generator, experiment.seed, "assignment", 1, device.id)
            assignment = method.assign(device, 1, random)
            if assignment is not None:
                rows.append(row)
                shares.append(float(column[row]))
                messages.append(assignment.messages)
    return np.array(rows, np.int64), np.array(shares), messages


def _width_shares(experiment: Experiment, population: Population) -> Floats | None:
    """[device, width]: the share of rounds in which a device trains up to each width.

    None if that depends on the run, as it does on batteries.
    """
    section, widths = experiment.population, experiment.model.widths
    levels, able = np.arange(len(widths)), np.asarray(population.max_width)[:, None]
    if section.width == "random":
        return np.asarray((levels <= able) / (able + 1))
    if section.width == "growing":
        begin = np.minimum(levels * section.grow_every, experiment.rounds)
        reached = 1 - begin / experiment.rounds  # the share of rounds in which it is allowed
        allowed = np.where(levels <= able, reached, 0.0)
        wider = np.append(allowed[:, 1:], np.zeros((len(able), 1)), axis=1)
        return np.asarray(allowed - wider)
    if section.width == "battery" and np.isfinite(population.battery_j).any():
        return None
    widest = widest_widths(section, population, widths, seed=experiment.seed, round=1)
    return np.asarray(levels == widest[:, None], np.float64)


def _may_be_missing(population: Population) -> bool:
    """True if a device of these may not send in a round for which it was asked."""
    return bool((population.availability < 1).any() or np.isfinite(population.battery_j).any())


#: Datasets of grey images in ten classes, whose network has known sizes.
GREY = ("fashion-mnist", "mnist", "synthetic")


@dataclass(frozen=True, eq=False)
class Prospect:
    """What is known of an experiment's devices before it runs."""

    population: Population
    delivered: Floats | None
    """[device, segment]: the probability that it arrives when the device is asked; None if there is
    no formula."""


def prospect(experiment: Experiment) -> Prospect:
    """The devices of an experiment; data is loaded only if its size is needed."""
    population = population_of(experiment)
    widths = experiment.model.widths
    channel = build_channel(experiment.radio)
    method = method_by_name(
        experiment.method, widths, experiment.federation.missing, experiment.method_options
    )
    sizes = _sizes(experiment) if _depends_on_sizes(experiment.radio) else []
    bits = tuple(segment_bits(experiment.radio, sizes).tolist()) if sizes else ()
    signals = SignalMaker(experiment.radio, len(widths), bits)
    if signals.per_device:
        signals.look_at(population, mean_noise_to_power(channel, population), sizes)
    delivered = delivery_probabilities(experiment, method, channel, population, signals)
    return Prospect(population, delivered)


def _depends_on_sizes(radio: RadioSection) -> bool:
    """True if the decoding probabilities depend on the sizes of the segments."""
    return (
        radio.multiplexing == "orthogonal-airtime"
        or radio.split_objective == "delivered"
        or radio.rates == "by-size"
        or (radio.decoder == "normal" and radio.codeword_symbols is None)
    )


def _sizes(experiment: Experiment) -> list[int]:
    """Number of parameters per segment of the network for the experiment's images."""
    model = experiment.model
    if (model.name, model.options) == ("ul-mobilenet", {}) and experiment.data.dataset in GREY:
        return paper_network_sizes(model.widths)
    dataset = load_section(experiment.data)
    channels = dataset.train.images.shape[-1]
    network = nn.network_of(experiment, channels, dataset.classes)
    return [int(size) for size in nn.segments(network, model.widths).sizes]
