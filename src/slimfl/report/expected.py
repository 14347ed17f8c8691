"""What theory says should arrive: equation (5) for what a method sends, per asked device."""

from collections import Counter

from slimfl.config import OWN, Experiment
from slimfl.errors import RequestError
from slimfl.federation import method
from slimfl.radio import channel, signal


def expected_shares(experiment: Experiment) -> list[float] | None:
    """The expected delivered share of every segment; None where nobody can tell.

    That is so for a method or a channel known only to its author, and for measured gains. A device
    that does not answer delivers nothing, so dropout counts against every segment.
    """
    if experiment.radio.fading == OWN or experiment.radio.gains == "measured":
        return None
    segments = len(experiment.model.widths)
    try:
        sends = method(experiment.method, experiment.model.widths).sends
    except RequestError:
        return None
    link = channel(experiment.radio)
    devices = experiment.federation.devices
    shares = [0.0] * segments
    for messages, count in Counter(sends(device) for device in range(devices)).items():
        coding = signal(experiment.radio, messages, segments).coding
        probabilities = link.decoding_probabilities(coding)
        for message, probability in zip(messages, probabilities, strict=True):
            for segment in message:
                shares[segment] += float(probability) * count / devices
    return [share * (1 - experiment.federation.dropout) for share in shares]
