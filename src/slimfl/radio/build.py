"""From the `radio` section to a channel: the paper's, or a user's own by `package.module:Name`."""

from collections.abc import Callable

from slimfl.errors import RequestError
from slimfl.experiment import OWN, RadioSection
from slimfl.experiment.naming import construct, resolve
from slimfl.radio.adaptive import AdaptiveChannel
from slimfl.radio.channel import Channel
from slimfl.radio.moving import MovingChannel
from slimfl.radio.outage import parts
from slimfl.radio.pairs import PairedChannel
from slimfl.radio.selective import channel_alone
from slimfl.radio.waveform.channel import waveform_channel


def _still(section: RadioSection) -> Channel:
    """Devices send alone or in pairs."""
    if section.decoder == "waveform":
        return waveform_channel(section, channel_alone(section))
    if section.users_per_slot == 2:
        return PairedChannel(**parts(section))
    return channel_alone(section)


CHANNEL_MODELS: dict[str, Callable[[RadioSection], Channel]] = {
    "outage": _still,
    "rate-adaptive": lambda section: AdaptiveChannel(**parts(section)),
}


def build_channel(section: RadioSection) -> Channel:
    """The channel that the section describes, for devices at rest or moving.

    A factory with the parameter `radio` gets the section.
    """
    if section.model == OWN:
        raise RequestError(
            "this run was made with a channel object; pass it again with "
            "slimfl.Radio(model=...) or slimfl.resume(..., channel=...)"
        )
    if section.model in CHANNEL_MODELS:
        still = CHANNEL_MODELS[section.model](section)
        if not section.speed_m_s:
            return still
        return MovingChannel(still, section.speed_m_s * section.round_s, section.area_radius_m)
    maker = resolve("channel", section.model, CHANNEL_MODELS, lambda made: hasattr(made, "receive"))
    made: Channel = construct(
        "channel", section.model, maker, section.options, {"radio": section}, key="radio.options"
    )
    return made
