"""`[radio]`: the channel, the signal and the decoder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, field_validator, model_validator

from slimfl.experiment.sections.section import (
    GIVEN,
    Fraction,
    Need,
    Part,
    Positive,
    PowerDbm,
    Rate,
    Seconds,
    Section,
    at_least,
)
from slimfl.files import read_regular
from slimfl.units import to_db

#: Maximum bit/s/Hz of all segments in one message; the gain it needs is 2 to that power.
MOST_RATE = 400.0

#: The paper's channels, calibrated on its table VI: they differ only in the noise power.
CHANNELS: dict[str, float] = {"good": -51.0, "poor": -40.0}


#: Maximum size of a decoder table.
MOST_BYTES, MOST_ROWS = 1 << 18, 2000


def _read_table(path: Path) -> tuple[tuple[float, ...], ...]:
    """The rows of a CSV file, g P/c in dB and a probability per message; a heading may be first."""
    try:
        lines = read_regular(path, MOST_BYTES).decode().splitlines()
    except FileNotFoundError:
        raise ValueError(f"there is no decoder table {path}; give the path of a CSV file") from None
    except (OSError, ValueError):
        raise ValueError(f"the decoder table {path} cannot be read; give a CSV file") from None
    filled = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    rows = []
    for place, (number, line) in enumerate(filled):
        try:
            rows.append(tuple(float(part) for part in line.split(",")))
        except ValueError:
            if place:
                raise ValueError(
                    f"line {number} of the decoder table {path} is not a list of numbers separated "
                    "by commas; correct it"
                ) from None
    if not 1 <= len(rows) <= MOST_ROWS:
        raise ValueError(f"the decoder table {path} must have from 1 to {MOST_ROWS} rows")
    return tuple(rows)


class RadioSection(Section):
    """What arrives at the server."""

    channel: str = "poor"
    """`good`, `poor`, or `custom` once `noise_dbm` is given; it sets the noise."""
    noise_dbm: PowerDbm | None = None
    """Noise power; set by `channel` when absent."""
    power_dbm: PowerDbm = 23.0
    """Transmit power of a device."""
    distance_m: Annotated[float, Field(gt=0, le=1e9), at_least(1e-3)] = 100.0
    """Distance between device and server."""
    path_loss_exponent: Annotated[float, Field(ge=2, le=10)] = 2.5
    """The exponent of the distance in the path loss."""
    bandwidth_hz: Annotated[float, Field(gt=0, le=1e15), at_least(1e-3)] = 75e6
    """Bandwidth of one device; sets airtime and energy."""
    spectral_efficiency: Rate | tuple[Rate, ...] = 1.5
    """u/W in bit/s/Hz: one number for all segments, or one each."""
    split: (
        Literal["optimal", "optimal-numeric", "per-device", "learned"] | tuple[Positive, ...] | None
    ) = None
    """Share of the power for each segment, narrowest first. Absent: `optimal`, the closed form; but
    the paper's 0.8 and 0.2 for two superposed segments of equal rate, and equal shares for segments
    one after the other. `per-device`: the best for each device's own mean
    gain under `split_objective`; a distant device then sends only the first segments.
    `learned`: the same, from what the server has decoded so far instead of the true mean gain."""
    split_drift_db: Annotated[float, Field(ge=0, le=20)] = 0.5
    """`learned`: how much a mean gain may change from one round to the next; 0: devices rest."""
    split_objective: Literal["bound", "delivered", "first-outage", "weighted"] = "bound"
    """What the split of each device optimises: theorem 1's bound over all devices, the expected
    number of delivered parameters, `first_outage` for segment 1, or the sum of the decoding
    probabilities, each times its `split_weights`."""
    split_weights: tuple[Positive, ...] | None = None
    """`weighted`: the weight of every segment's decoding probability; equal when absent."""
    first_outage: Annotated[float, Field(gt=0, lt=1), at_least(1e-9)] = 0.01
    """`first-outage`: how often segment 1 may be lost; the other segments get the remaining
    power."""
    model: Part = "outage"
    """`outage` (block fading with Shannon thresholds), `rate-adaptive` (the same gains, and every
    device sends as fast as its own allows), or `package.module:Name`, a channel of your own; in
    Python also the channel itself, which the run folder calls `own`."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of a channel of your own."""
    noise_density_dbm_hz: PowerDbm | None = None
    """Thermal noise density, about -174; with `bandwidth_hz` and `noise_figure_db` it gives the
    noise power, instead of `channel` and `noise_dbm`."""
    noise_figure_db: Annotated[float, Field(ge=0, le=100)] = 0.0
    """Noise figure of the receiver, added to `noise_density_dbm_hz`."""
    path_loss: Literal["power-law", "free-space", "umi", "uma"] = "power-law"
    """The paper's d^beta; free space at `carrier_hz`; street canyon or macro cell of TR 38.901."""
    carrier_hz: Annotated[float, Field(ge=1e6, le=1e12)] = 5.9e9
    """Carrier frequency, for every path loss but the power law (the paper: 5.9 GHz)."""
    line_of_sight: Literal["drawn", "always", "never"] = "drawn"
    """`umi` and `uma`: `drawn` once per device with 3GPP's probability at its distance."""
    server_height_m: Annotated[float, Field(ge=2, le=1000)] | None = None
    """`umi` and `uma`: height of the server's antenna; 10 and 25 when absent."""
    device_height_m: Annotated[float, Field(ge=1.5, le=13)] = 1.5
    """`umi` and `uma`: height of a device."""
    fading: Literal[
        "rayleigh", "none", "rician", "nakagami", "tdl-a", "tdl-b", "tdl-c", "tdl-d", "tdl-e"
    ] = "rayleigh"
    """One gain for the whole band, or (`tdl-a` to `tdl-e`) one per subcarrier, by the profiles of
    TR 38.901; messages are then decoded at their effective SINR."""
    delay_spread_s: Annotated[float, Field(ge=0, le=1e-3)] = 1e-7
    """`tdl-a` to `tdl-e`: root mean square of the delays; 0 is a flat link."""
    subcarriers: Annotated[int, Field(ge=1, le=4096)] = 64
    """`tdl-a` to `tdl-e`: gains over `bandwidth_hz`."""
    rician_k_db: Annotated[float, Field(ge=-40, le=40)] = 6.0
    """`rician`: power of the line of sight over that of the scattered waves."""
    nakagami_m: Annotated[float, Field(ge=0.5, le=1e4)] = 2.0
    """`nakagami`: the shape; 1 is Rayleigh."""
    fading_process: Literal["independent", "ar1", "jakes"] = "independent"
    """New fading in every round, or correlated from round to round."""
    fading_correlation: Annotated[float, Field(ge=-1, le=1)] | None = None
    """`ar1`: correlation between one round and the next; or give `doppler_hz`."""
    doppler_hz: Annotated[float, Field(ge=0, le=1e6)] | None = None
    """`ar1` and `jakes`: largest Doppler shift; with `round_s` it sets the correlation."""
    round_s: Seconds = 1.0
    """Time between the beginnings of two rounds, for `doppler_hz` and `speed_m_s`."""
    speed_m_s: Annotated[float, Field(ge=0, le=1e5)] = 0.0
    """Speed of devices, which walk from waypoint to waypoint around the server; 0: at rest."""
    area_radius_m: Annotated[float, Field(ge=1, le=1e9)] | None = None
    """`speed_m_s`: radius of the disc of waypoints; the largest distance at the start when
    absent."""
    shadowing_db: Annotated[float, Field(ge=0, le=50)] | None = None
    """Deviation of log-normal shadowing. Absent: none, and with `umi` and `uma` 3GPP's own."""
    shadowing_correlation: Fraction = 0.0
    """Correlation of shadowing between rounds: 0 draws it anew, 1 keeps it."""
    decoder: Literal["outage", "gap", "normal", "table", "waveform"] = "outage"
    """Shannon's formula; the same with a gap; codewords of finite length by the normal
    approximation; measured probabilities, in `decoder_table` or else made once from real symbols;
    or real symbols, which carry every parameter (extra `waveform`)."""
    sinr_gap_db: Annotated[float, Field(ge=0, le=60)] = 0.0
    """`gap`: how much more signal over interference and noise a code needs than Shannon's
    formula; `slimfl link --waveform` fits it."""
    modulation: Annotated[int, Field(ge=2, le=8, multiple_of=2)] = 4
    """Real symbols: coded bits per symbol, 4 for 16-QAM; the code rate is the spectral efficiency
    over this."""
    block_bits: Annotated[int, Field(ge=64, le=8448)] = 1024
    """Real symbols: most information bits of an LDPC code block, its CRC included."""
    decoder_iterations: Annotated[int, Field(ge=1, le=200)] = 20
    """Real symbols: most iterations of belief propagation per code block."""
    codeword_symbols: Annotated[int, Field(ge=10, le=10**9)] | None = None
    """`normal`: symbols of one codeword; absent: one codeword per message."""
    decoder_table: tuple[tuple[float, ...], ...] | None = None
    """`table`: rows of the signal-to-noise ratio g P/c in dB and the probability that message 1,
    messages 1 and 2, ... are decoded; or the path of a CSV file with such rows."""
    residual_interference: Fraction = 0.0
    """Share of a cancelled message's power that still interferes; 0 is perfect cancellation."""
    max_attempts: Annotated[int, Field(ge=1, le=64)] = 1
    """Maximum number of times that a signal is sent, with chase combining."""
    retransmission_gain: Literal["independent", "same"] = "independent"
    """Whether each attempt has new fading or that of the first attempt."""
    multiplexing: Literal["superposition", "orthogonal-energy", "orthogonal-airtime"] = (
        "superposition"
    )
    """Segments superposed, or one after the other: with at most the same energy (`split` shares the
    power) or in the same airtime (`split` shares the time)."""
    users_per_slot: Annotated[int, Field(ge=1, le=2)] = 1
    """2: devices send in pairs at the same time, and are decoded successively across both."""
    downlink: Literal["perfect", "lossy"] = "perfect"
    """`lossy`: a device may miss the global model; `downlink_missed` says what follows."""
    downlink_missed: Literal["sits-out", "own-model"] = "sits-out"
    """`lossy`: a device that missed the global model sits out the round, or trains on from its own
    last model (before it has one, from the initial network) and sends that."""
    downlink_power_dbm: PowerDbm = 23.0
    """`lossy`: transmit power of the server."""
    downlink_spectral_efficiency: Rate = 1.5
    """`lossy`: rate of the whole model in bit/s/Hz, in one message."""
    rates: Literal["equal", "by-size"] = "by-size"
    """`by-size`: rates in proportion to the segments' sizes, with `spectral_efficiency` as their
    mean, so that all segments take the same time and none is sent at full power into the end of
    another. `equal`: the paper's link, and the default if `spectral_efficiency` has one value per
    segment."""
    gains: Literal["drawn", "measured"] = "drawn"
    """`drawn` from the fading, by (seed, round, device); `measured`: every device of a deployment
    reports the power gain that its radio measured."""
    implementation_loss_db: Annotated[float, Field(ge=-100, le=100)] = 0.0
    """How much worse a real decoder is than the outage formula."""
    accounting: Literal["true", "paper"] = "true"
    """Bits per segment: counted on the network, or the paper's (equal segments)."""
    bits_per_parameter: Annotated[float, Field(gt=0, le=1e6), at_least(1e-3)] = 32.0
    """Used by `accounting = "true"`."""

    @model_validator(mode="wrap")
    @classmethod
    def _preset(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(given, dict):
            return handler(given)
        values = dict(given)
        if isinstance(values.get("spectral_efficiency"), list | tuple):
            values.setdefault("rates", "equal")
        channel = values.get("channel")
        noise, has_density = values.get("noise_dbm"), values.get("noise_density_dbm_hz") is not None
        if channel is None or (channel == "custom" and (has_density or noise is not None)):
            channel = None
        elif not isinstance(channel, str) or channel not in CHANNELS:
            raise ValueError(
                f"there is no channel {channel!r}; choose one of {', '.join(CHANNELS)}, or give "
                "noise_dbm"
            )
        if has_density and (channel, noise) != (None, None):
            other = "noise_dbm" if channel is None else "channel"
            raise ValueError(f"give radio.noise_density_dbm_hz or radio.{other}, not both")
        if channel is not None and noise not in (None, CHANNELS[channel]):
            raise ValueError(
                f"give radio.channel or radio.noise_dbm, not both: the {channel} channel has "
                f"{CHANNELS[channel]:g} dBm"
            )
        if has_density:
            values["channel"] = "custom"
        elif noise is None:
            values["channel"] = channel or "poor"
            values["noise_dbm"] = CHANNELS[values["channel"]]
        else:
            named = (name for name, preset in CHANNELS.items() if preset == noise)
            values["channel"] = next(named, "custom")
        made = handler(values)
        # what follows from other keys follows them through `Experiment.change`, too
        made.model_fields_set.difference_update(values.keys() - given.keys())
        return made

    @field_validator("split")
    @classmethod
    def _sums_to_one(cls, split: Any) -> Any:
        if isinstance(split, tuple) and abs(sum(split) - 1) > 1e-6:
            raise ValueError(f"must sum to 1, and {' + '.join(map(str, split))} does not")
        return split

    @field_validator("decoder_table", mode="before")
    @classmethod
    def _from_file(cls, table: Any) -> Any:
        return _read_table(Path(table)) if isinstance(table, str | Path) else table

    needs: ClassVar = (
        Need("fading_correlation", {"fading_process": ("ar1",)}),
        Need("doppler_hz", {"fading_process": ("ar1", "jakes")}),
        Need("fading_process", {"doppler_hz": GIVEN}, of=("jakes",)),
        Need("decoder_table", {"decoder": ("table",)}),
        Need("codeword_symbols", {"decoder": ("normal",)}),
        Need("residual_interference", {"multiplexing": ("superposition",)}),
        Need("downlink_missed", {"downlink": ("lossy",)}),
        Need("split_objective", {"split": ("per-device", "learned")}, of=("weighted",)),
        Need(
            "fading",
            {"fading_process": ("independent",), "max_attempts": (1,), "users_per_slot": (1,),
             "gains": ("drawn",), "downlink": ("perfect",)},
            of=("tdl-a", "tdl-b", "tdl-c", "tdl-d", "tdl-e"),
        ),
        Need(
            "users_per_slot",
            {"multiplexing": ("superposition",), "decoder": ("outage",), "max_attempts": (1,),
             "gains": ("drawn",)},
        ),
        Need(
            "split",
            {"fading": ("rayleigh",), "decoder": ("outage",), "multiplexing": ("superposition",),
             "residual_interference": (0,), "max_attempts": (1,)},
            of=("per-device", "learned"),
            why="one split for all devices has no such limits",
        ),
        Need("split", {"gains": ("drawn",)}, of=("per-device",), why="it follows the mean gain"),
        Need(
            "model",
            {"multiplexing": ("superposition",), "decoder": ("outage",), "users_per_slot": (1,),
             "max_attempts": (1,), "fading": ("rayleigh", "none", "rician", "nakagami")},
            of=("rate-adaptive",),
            why="every device sends alone, at exactly the rate that its gain lets through",
        ),
        Need(
            "gains",
            {"max_attempts": (1,), "fading_process": ("independent",)},
            of=("measured",),
            why="there is one gain per round",
        ),
    )  # fmt: skip

    @model_validator(mode="after")
    def _parts_fit(self) -> RadioSection:
        """Refuse what no list of values can say, with the key to change."""
        given = self.fading_correlation is not None
        if self.fading_process == "ar1" and given == (self.doppler_hz is not None):
            raise ValueError(
                'radio.fading_process = "ar1" needs radio.fading_correlation or radio.doppler_hz, '
                "one of them"
            )
        if self.area_radius_m is not None and not self.speed_m_s:
            raise ValueError("radio.area_radius_m needs a radio.speed_m_s above 0")
        if self.rates == "by-size" and isinstance(self.spectral_efficiency, tuple):
            raise ValueError(
                'radio.rates = "by-size" needs one radio.spectral_efficiency, the mean of all'
            )
        if self.split_for_each_device and self.has_shadowing:
            raise ValueError(
                f'radio.split = "{self.split}" needs radio.shadowing_db = 0 (umi and uma have '
                "shadowing of their own)"
            )
        if self.path_loss in ("umi", "uma"):
            for key, low, high in (("distance_m", 10, 5000), ("carrier_hz", 0.5e9, 100e9)):
                if not low <= getattr(self, key) <= high:
                    raise ValueError(
                        f'radio.path_loss = "{self.path_loss}" is valid for a radio.{key} from '
                        f"{low:g} to {high:g}"
                    )
        if self.has_symbols:
            if self.split == "optimal-numeric" or (self.residual_interference and not self.split):
                raise ValueError(
                    f'radio.decoder = "{self.decoder}" would make symbols for every split that is '
                    "tried; give radio.split as numbers"
                )
            if self.bits_per_parameter != 32 or self.accounting != "true":
                raise ValueError(
                    f'radio.decoder = "{self.decoder}" sends parameters as they are; leave '
                    'radio.bits_per_parameter at 32 and radio.accounting at "true"'
                )
        return self

    @property
    def split_for_each_device(self) -> bool:
        """Whether every device has a split of its own."""
        return self.split in ("per-device", "learned")

    @property
    def has_shadowing(self) -> bool:
        """Whether there is any shadowing, given or the path loss model's own."""
        if self.shadowing_db is None:
            return self.path_loss in ("umi", "uma")
        return self.shadowing_db > 0

    @property
    def changes_with_memory(self) -> tuple[str, str] | None:
        """The key that makes links change from round to round with memory, and its value without.

        None if rounds are independent, or if what is remembered never changes.
        """
        constant = self.fading_correlation == 1 or self.doppler_hz == 0
        if self.fading_process != "independent" and not constant:
            return "radio.fading_process", '"independent"'
        if self.speed_m_s:
            return "radio.speed_m_s", "0"
        if self.has_shadowing and 0 < self.shadowing_correlation < 1:
            return "radio.shadowing_correlation", "0 or 1"
        return None

    @property
    def frequency_selective(self) -> bool:
        """Whether every subcarrier has a gain of its own."""
        return self.fading.startswith("tdl-")

    @property
    def has_symbols(self) -> bool:
        """Whether decoding is that of real symbols, in the loop or in a table made of them."""
        return self.decoder == "waveform" or (
            self.decoder == "table" and self.decoder_table is None
        )

    @property
    def noise(self) -> float:
        """The noise power in dBm: from the preset, as given, or of the noise density."""
        if self.noise_dbm is not None:
            return self.noise_dbm
        assert self.noise_density_dbm_hz is not None
        width_db = to_db(self.bandwidth_hz)
        return self.noise_density_dbm_hz + width_db + self.noise_figure_db
