"""The devices of an experiment and how often each would be heard, before any round."""

from dataclasses import dataclass

from slimfl.config import Experiment
from slimfl.data import load_section
from slimfl.federation.expected import Floats, delivery_probabilities, mean_noise_to_power
from slimfl.methods import method as method_by_name
from slimfl.population import Population, population_of
from slimfl.radio import SignalMaker, build_channel


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
    signals = SignalMaker(experiment.radio, len(widths))
    if signals.per_device:
        sizes = _sizes(experiment) if experiment.radio.split_objective == "delivered" else []
        signals.look_at(population, mean_noise_to_power(channel, population), sizes)
    delivered = delivery_probabilities(experiment, method, channel, population, signals)
    return Prospect(population, delivered)


def _sizes(experiment: Experiment) -> list[int]:
    """Number of parameters per segment of the network for the experiment's images."""
    from slimfl.nn import build, segments  # imports torch, which few radio settings need

    dataset, model = load_section(experiment.data), experiment.model
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
