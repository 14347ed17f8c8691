"""The devices of an experiment and how often each would be heard, before any round."""

from dataclasses import dataclass

from slimfl.data import load_section
from slimfl.devices import Population, population_of
from slimfl.experiment import Experiment, RadioSection
from slimfl.methods import method as method_by_name
from slimfl.radio import SignalMaker, build_channel, paper_network_sizes, segment_bits
from slimfl.round.expected import Floats, delivery_probabilities, mean_noise_to_power

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
    from slimfl.nn import build, segments  # imports torch, which few other networks need here

    dataset = load_section(experiment.data)
    network = build(
        model.name,
        model.options,
        in_channels=dataset.train.images.shape[-1],
        classes=dataset.classes,
        widths=model.widths,
        initialisation=model.initialisation,
        seed=experiment.seed,
    )
    return [int(size) for size in segments(network, model.widths).sizes]
