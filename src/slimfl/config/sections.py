"""The sections of an experiment: every key with its type, its default and its meaning."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from slimfl.config.base import (
    BelowOne,
    Count,
    Fraction,
    Positive,
    PowerDbm,
    Rate,
    Seconds,
    Section,
    at_least,
)
from slimfl.config.decoder_table import read_table
from slimfl.config.population import PopulationSection
from slimfl.config.time import EnergySection, TimeSection
from slimfl.naming import module_of

#: Maximum number of widths of a network: one byte per parameter stores its segment.
MOST_WIDTHS = 32
#: Maximum bit/s/Hz of all segments in one message; the gain it needs is 2 to that power.
MOST_RATE = 400.0
#: Maximum number of samples per device and round, whose order is drawn at once.
MOST_SAMPLES = 20_000_000

#: The paper's channels, calibrated on its table VI: they differ only in the noise power.
CHANNELS: dict[str, float] = {"good": -51.0, "poor": -40.0}


#: Placeholder for a network, dataset or channel that was given as an object, not by name.
OWN = "own"

#: Keys whose value names a part: built-in or `package.module:Name` (see `slimfl.naming`).
NAMES = ("method", "model.name", "training.algorithm", "radio.model", "data.dataset", "callbacks")


class DataSection(Section):
    """What the devices hold."""

    dataset: str = "fashion-mnist"
    """`fashion-mnist`, `mnist`, `synthetic`; `folder`, the images below `dir`; the path of a folder
    with four idx files, CIFAR-10's binary files or images; or `package.module:Name`, which makes a
    `slimfl.data.Dataset` or is a torch dataset; `own` in the folder of a run whose data were given
    in Python."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of a dataset of your own; of a folder of images, `size` (rows and columns
    to resize to), `grey`, and `train` and `test`, the names of the folders inside."""
    dir: Path | None = None
    """Where the files of a named dataset are; without it, the sources are tried in turn."""
    partition: Literal["dirichlet", "dirichlet-equal", "iid", "shards", "natural", "own"] = (
        "dirichlet"
    )
    """How the training samples are distributed; `natural`: as the data say, which name the holder
    of every sample (with fewer `federation.devices`, the first of them); `own`: every device of a
    deployment brings its own folder, and `dataset` only gives the server its test set and the
    normalisation."""
    alpha: Annotated[float, Field(gt=0, le=1e6), at_least(1e-6)] = 1.0
    """Dirichlet concentration; with smaller values, devices differ more."""
    min_samples: Count = 10
    """Minimum number of training samples per device."""
    shards_per_device: Count = 2
    train_samples: Count | None = None
    """Number of training samples to use; all when absent."""
    test_samples: Count | None = None
    downscale: Annotated[int, Field(ge=1, le=64)] = 1
    """Divide both sides of every image by this: 2 makes 14 x 14 of 28 x 28."""
    normalise: Literal["standard", "plain", "centred"] = "standard"
    """`standard`: zero mean, unit variance over the training set; `plain`: 0 to 1; `centred`: -1 to
    1, by the constants (x - 0.5) / 0.5. With `privacy.noise_multiplier` the default is `centred`,
    because `standard` takes its constants from the data of all devices."""


class ModelSection(Section):
    """The network and its widths."""

    name: str = "ul-mobilenet"
    """`ul-mobilenet`; `us-mobilenet`, the same with batch normalisation; `resnet`, for colour
    images; `mlp`; `split-mix`, for the method of that name; or `package.module:Name`, a class or
    function that makes a network of slimmable layers; `own` in the folder of a run whose network
    was given in Python."""
    widths: tuple[float, ...] = (0.5, 1.0)
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the network's factory."""
    initialisation: Literal["he", "he-fan-out", "xavier", "torch"] = "he"

    @field_validator("widths")
    @classmethod
    def _nested(cls, widths: tuple[float, ...]) -> tuple[float, ...]:
        if not widths or any(b <= a for a, b in itertools.pairwise((0.0, *widths))):
            raise ValueError("must be positive and ascending, for example [0.5, 1.0]")
        if widths[-1] != 1.0:
            raise ValueError("must end with 1.0, the full network")
        if widths[0] < 1e-3 or len(widths) > MOST_WIDTHS:
            raise ValueError(f"must be at most {MOST_WIDTHS} widths, each at least 0.001")
        return widths


class TrainingSection(Section):
    """How a device learns."""

    algorithm: str = "sustrain"
    """The local step of a device that trains several widths: `sustrain`, `slimtrain`, `ustrain`, or
    `package.module:Name`; methods of one width do not read it."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of a local step of your own."""
    order: Literal["sequential", "accumulate"] = "sequential"
    """SlimTrain and USTrain: one optimiser step per width, or one for the sum of all."""
    weights: tuple[Positive, ...] | None = None
    """Weight of every width's loss, narrowest first; 1/S each when absent. The paper's sum to 1."""
    sampled_widths: Count = 4
    """USTrain's sandwich rule with S > 2: how many widths take part in one step."""
    optimiser: Literal["adam", "sgd"] = "adam"
    learning_rate: Positive = 1e-3
    schedule: Literal["constant", "cosine", "theorem1"] = "constant"
    smoothness: Positive = 1.0
    """L of theorem 1's learning rate 2 / (mu t + 2 L - mu)."""
    strong_convexity: Positive = 1.0
    """mu of theorem 1's learning rate."""
    momentum: BelowOne = 0.9
    """SGD only."""
    nesterov: bool = False
    weight_decay: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    betas: tuple[BelowOne, BelowOne] = (0.9, 0.999)
    """Adam only."""
    batch_size: Count = 16
    epochs: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Local epochs per round (the paper: 1); give this or `steps`, not both."""
    steps: Count | None = None
    """Local steps per round instead of whole epochs; 100 when neither is given."""
    proximal_mu: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    """FedProx: half of this times the squared distance to the round's model is added to the
    loss."""
    optimiser_state: Literal["kept", "fresh"] = "kept"
    """Whether a device keeps its moments between rounds."""

    @field_validator("algorithm")
    @classmethod
    def _known_step(cls, algorithm: str) -> str:
        if algorithm not in ("sustrain", "slimtrain", "ustrain") and module_of(algorithm) is None:
            raise ValueError(
                f"there is no local step {algorithm!r}; choose sustrain, slimtrain, ustrain or "
                "package.module:Name"
            )
        return algorithm

    @model_validator(mode="before")
    @classmethod
    def _local_work(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        epochs, steps = values.get("epochs"), values.get("steps")
        if epochs is not None and steps is not None:
            raise ValueError("give training.epochs or training.steps, not both")
        return values if epochs is not None or steps is not None else {**values, "steps": 100}

    @model_validator(mode="after")
    def _theorem1_is_a_rate(self) -> TrainingSection:
        if self.strong_convexity > self.smoothness:
            raise ValueError("strong_convexity must not exceed smoothness")
        if self.nesterov and self.momentum == 0:
            raise ValueError("nesterov needs a momentum above 0")
        if (self.steps or 0) * self.batch_size > MOST_SAMPLES:
            raise ValueError(
                f"training.steps times training.batch_size must be at most {MOST_SAMPLES:,}"
            )
        return self


class RadioSection(Section):
    """What arrives at the server."""

    channel: str = "poor"
    """`good`, `poor`, or `custom` once `noise_dbm` is given; it sets the noise."""
    noise_dbm: PowerDbm | None = None
    power_dbm: PowerDbm = 23.0
    distance_m: Annotated[float, Field(gt=0, le=1e9), at_least(1e-3)] = 100.0
    path_loss_exponent: Annotated[float, Field(ge=2, le=10)] = 2.5
    bandwidth_hz: Annotated[float, Field(gt=0, le=1e15), at_least(1e-3)] = 75e6
    spectral_efficiency: Rate | tuple[Rate, ...] = 1.5
    """u/W in bit/s/Hz: one number for all segments, or one each."""
    split: (
        Literal["optimal", "optimal-numeric", "per-device", "learned"] | tuple[Positive, ...] | None
    ) = None
    """Share of the power for each segment, narrowest first. Absent: the paper's 0.8 and 0.2 for two
    segments of equal rate, `optimal` otherwise. `per-device`: the best for each device's own mean
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
    model: str = "outage"
    """`outage` (block fading with Shannon thresholds), `rate-adaptive` (the same gains, and every
    device sends as fast as its own allows), or `package.module:Name`, a channel of your own; `own`
    in the folder of a run whose channel was given in Python."""
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
    """Segments superposed, or one after the other: with the same energy (`split` shares the power)
    or in the same airtime (`split` shares the time)."""
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
    rates: Literal["equal", "by-size"] = "equal"
    """`by-size`: rates in proportion to the segments' sizes, with `spectral_efficiency` as their
    mean, so that all segments take the same time."""
    gains: Literal["drawn", "measured"] = "drawn"
    """`drawn` from the fading, by (seed, round, device); `measured`: every device of a deployment
    reports the power gain that its radio measured."""
    implementation_loss_db: Annotated[float, Field(ge=-100, le=100)] = 0.0
    """How much worse a real decoder is than the outage formula."""
    accounting: Literal["true", "paper"] = "true"
    """Bits per segment: counted on the network, or the paper's (equal segments)."""
    bits_per_parameter: Annotated[float, Field(gt=0, le=1e6), at_least(1e-3)] = 32.0

    @model_validator(mode="before")
    @classmethod
    def _preset(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        values = dict(values)
        channel = values.get("channel")
        if values.get("noise_density_dbm_hz") is not None:
            if values.get("noise_dbm") is not None or channel not in (None, "custom"):
                raise ValueError(
                    "give radio.noise_density_dbm_hz, or radio.noise_dbm or radio.channel, not both"
                )
            values["channel"] = "custom"
        elif values.get("noise_dbm") is None:
            channel = "poor" if channel is None else channel
            if not isinstance(channel, str) or channel not in CHANNELS:
                known = ", ".join(CHANNELS)
                raise ValueError(
                    f"there is no channel {channel!r}; choose one of {known}, or give noise_dbm"
                )
            values["noise_dbm"] = CHANNELS[channel]
        else:
            values["channel"] = next(
                (name for name, noise in CHANNELS.items() if noise == values["noise_dbm"]), "custom"
            )
        return values

    @field_validator("split")
    @classmethod
    def _sums_to_one(cls, split: Any) -> Any:
        if isinstance(split, tuple) and abs(sum(split) - 1) > 1e-6:
            raise ValueError(f"must sum to 1, and {' + '.join(map(str, split))} does not")
        return split

    @field_validator("decoder_table", mode="before")
    @classmethod
    def _read_table(cls, table: Any) -> Any:
        return read_table(Path(table)) if isinstance(table, str | Path) else table

    @model_validator(mode="after")
    def _parts_fit(self) -> RadioSection:
        """Refuse keys that contradict each other, with the one to change."""
        correlated, has_doppler = self.fading_process != "independent", self.doppler_hz is not None
        given = self.fading_correlation is not None
        if (given or has_doppler) and not correlated:
            raise ValueError(
                'radio.fading_correlation and radio.doppler_hz need radio.fading_process = "ar1" '
                'or "jakes"'
            )
        if self.fading_process == "jakes" and (given or not has_doppler):
            raise ValueError('radio.fading_process = "jakes" needs radio.doppler_hz alone')
        if self.fading_process == "ar1" and given == has_doppler:
            raise ValueError(
                'radio.fading_process = "ar1" needs radio.fading_correlation or radio.doppler_hz, '
                "one of them"
            )
        if self.decoder_table is not None and self.decoder != "table":
            raise ValueError('radio.decoder_table needs radio.decoder = "table"')
        if self.has_symbols:
            self._symbols_fit()
        if self.fading.startswith("tdl-") and (
            correlated
            or self.max_attempts > 1
            or self.users_per_slot == 2
            or self.gains == "measured"
            or self.downlink == "lossy"
            or self.model == "rate-adaptive"
        ):
            raise ValueError(
                f"radio.fading = {self.fading!r} needs independent rounds, one attempt, one device "
                "per slot, drawn gains, a perfect downlink and the outage model"
            )
        if self.codeword_symbols is not None and self.decoder != "normal":
            raise ValueError('radio.codeword_symbols needs radio.decoder = "normal"')
        if self.path_loss in ("umi", "uma") and not 10 <= self.distance_m <= 5000:
            raise ValueError(
                f"radio.path_loss = {self.path_loss!r} is valid for a radio.distance_m from 10 to "
                "5000"
            )
        if self.path_loss in ("umi", "uma") and not 0.5e9 <= self.carrier_hz <= 100e9:
            raise ValueError(
                f"radio.path_loss = {self.path_loss!r} is valid for a radio.carrier_hz from 0.5e9 "
                "to 100e9"
            )
        if self.residual_interference and self.multiplexing != "superposition":
            raise ValueError(
                "radio.residual_interference applies only to superposition; set it to 0, or "
                'radio.multiplexing to "superposition"'
            )
        if self.users_per_slot == 2 and (
            self.multiplexing != "superposition"
            or self.decoder != "outage"
            or self.max_attempts > 1
            or self.gains == "measured"
        ):
            raise ValueError(
                "radio.users_per_slot = 2 needs superposition, the outage decoder, one attempt "
                "and drawn gains"
            )
        if self.downlink_missed != "sits-out" and self.downlink == "perfect":
            raise ValueError(
                f'radio.downlink_missed = "{self.downlink_missed}" needs radio.downlink = "lossy"'
            )
        if self.area_radius_m is not None and not self.speed_m_s:
            raise ValueError("radio.area_radius_m needs a radio.speed_m_s above 0")
        if self.rates == "by-size" and isinstance(self.spectral_efficiency, tuple):
            raise ValueError(
                'radio.rates = "by-size" needs one radio.spectral_efficiency, the mean of all'
            )
        alone = (self.fading, self.decoder, self.multiplexing) == (
            "rayleigh",
            "outage",
            "superposition",
        )
        if self.split_for_each_device and not (
            alone
            and not self.shadowing_db
            and not self.residual_interference
            and self.max_attempts == 1
        ):
            raise ValueError(
                f'radio.split = "{self.split}" needs Rayleigh fading, the outage decoder, '
                "superposition and one attempt; set these, or give one split for all devices"
            )
        if self.split_objective == "weighted" and not self.split_for_each_device:
            raise ValueError(
                'radio.split_objective = "weighted" needs radio.split = "per-device" or "learned"'
            )
        if self.model == "rate-adaptive" and self.multiplexing != "superposition":
            raise ValueError(
                'radio.model = "rate-adaptive" needs radio.multiplexing = "superposition"'
            )
        if self.gains == "measured" and (self.max_attempts > 1 or correlated):
            raise ValueError(
                'radio.gains = "measured" gives one gain per round; leave radio.max_attempts and '
                "radio.fading_process at their defaults"
            )
        return self

    @property
    def split_for_each_device(self) -> bool:
        """Whether every device has a split of its own."""
        return self.split in ("per-device", "learned")

    @property
    def has_symbols(self) -> bool:
        """Whether decoding is that of real symbols, in the loop or in a table made of them."""
        return self.decoder == "waveform" or (
            self.decoder == "table" and self.decoder_table is None
        )

    def _symbols_fit(self) -> None:
        """Refuse what symbols cannot be made for."""
        if self.split == "optimal-numeric" or (self.residual_interference and not self.split):
            raise ValueError(
                f"radio.decoder = {self.decoder!r} would make symbols for every split that is "
                "tried; give radio.split as numbers"
            )
        if self.model == "rate-adaptive":
            raise ValueError(
                f'radio.decoder = {self.decoder!r} needs radio.model = "outage": a rate that '
                "follows the gain has no fixed code"
            )
        if self.bits_per_parameter != 32 or self.accounting != "true":
            raise ValueError(
                f"radio.decoder = {self.decoder!r} sends parameters as they are; leave "
                'radio.bits_per_parameter at 32 and radio.accounting at "true"'
            )

    @property
    def noise(self) -> float:
        """The noise power in dBm: from the preset, as given, or of the noise density."""
        if self.noise_dbm is not None:
            return self.noise_dbm
        assert self.noise_density_dbm_hz is not None
        width_db = 10 * math.log10(self.bandwidth_hz)
        return self.noise_density_dbm_hz + width_db + self.noise_figure_db


class ServerSection(Section):
    """What the server does with the mean change of a round; by default it takes it as it is."""

    optimiser: Literal["none", "momentum", "adam"] = "none"
    """`momentum` is FedAvgM, `adam` is FedAdam; parameters that did not arrive do not change."""
    learning_rate: Positive = 1.0
    """Learning rate of the server's step; use 0.01 or less for FedAdam."""
    momentum: BelowOne = 0.9
    """Momentum only: the share of the last step that is kept."""
    betas: tuple[BelowOne, BelowOne] = (0.9, 0.99)
    """Adam only."""
    tau: Positive = 1e-3
    """Adam only: constant that is added to the root of the second moment."""


class FederationSection(Section):
    """Rounds: who trains, what is merged, when it ends."""

    devices: Annotated[int, Field(ge=1, le=1_000_000)] = 10
    participation: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the devices asked to train in a round."""
    dropout: BelowOne = 0.0
    """Chance that an asked device does not answer."""
    average: Literal["uniform", "samples"] = "uniform"
    missing: Literal["keep", "zero"] = "keep"
    """A segment that nobody delivered: keep its last value, or the paper's literal zero."""
    absent: Literal["skip", "old", "stale", "zero"] = "skip"
    """A device whose segment did not arrive, where another's did: left out of the mean, as in the
    paper, or counted in it as the `old` global model, as the last one that did arrive from it
    (`stale`: the server keeps one vector for every device that it ever heard), or as `zero`."""
    evaluate_every: Count = 1
    checkpoint_every: Count = 1
    stop_on_convergence: bool = False
    """End the run in the first round whose window passes the convergence test at every width."""
    convergence_window: Count = 100
    convergence_accuracy: Fraction = 0.80
    convergence_deviation: Positive = 0.072


class PrivacySection(Section):
    """Differential privacy of what devices contribute; off without a clipping norm."""

    clip_norm: Positive | None = None
    """C: the delivered part of a device's update is clipped to this norm."""
    noise_multiplier: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    """z: the sum of a segment's updates gets Gaussian noise of deviation z C."""
    delta: Annotated[float, Field(gt=0, lt=1), at_least(1e-100)] = 1e-5
    """The delta for which epsilon is reported."""
    noise: Literal["secret", "seeded"] = "secret"
    """`secret`: from the operating system's cryptographic generator, so two runs differ; `seeded`:
    from the seed, so a run can be repeated, and whoever knows the seed can take the noise off
    again."""

    @model_validator(mode="after")
    def _noise_needs_a_norm(self) -> PrivacySection:
        if self.noise_multiplier > 0 and self.clip_norm is None:
            raise ValueError("privacy.noise_multiplier needs privacy.clip_norm; give both")
        if 0 < self.noise_multiplier < 1e-3:
            raise ValueError("privacy.noise_multiplier must be 0 or at least 0.001")
        return self


class FlowerSection(Section):
    """The `flower` engine: devices in other processes and on other machines."""

    device_engine: Literal["auto", "torch", "native"] = "auto"
    """The engine that trains on the devices and evaluates on the server."""
    quorum: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of a round's devices that must answer; with fewer the run stops and can be resumed."""
    round_timeout_s: Seconds = 600.0
    """How long the server waits for a device's answer in a round."""
    wait_s: Seconds = 300.0
    """How long the server waits for a quorum of devices before it stops."""
    identity: Literal["registered", "claimed"] = "registered"
    """Which node is device 3 in a deployment: the node whose key was registered under the name
    `device-3`, or any node that claims to be (`partition-id=3` in its node config)."""


class CallbackSection(Section):
    """Who else watches a run."""

    name: str
    """`early-stopping`, or `package.module:Name`, a class derived from `slimfl.Callback`."""
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value


class Experiment(Section):
    """One method under one seed: all that is needed to repeat a run."""

    method: str = "slimfl"
    """`slimfl`, `vanilla-0.5x` and the like, or `package.module:Name`."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    rounds: Annotated[int, Field(ge=1, le=10_000_000)] = 30
    engine: Literal["auto", "torch", "native", "flower"] = "auto"
    device: Annotated[str, Field(pattern=r"^(cpu|cuda(:\d{1,3})?)$")] | None = None
    """Where networks are trained: `cpu`, `cuda` (the torch engine on a GPU) or `cuda:1`; when
    absent, the torch engine takes a GPU if there is one."""
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Cores to use; all when absent."""
    method_options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of a method of your own."""
    callbacks: tuple[CallbackSection, ...] = ()
    """Callbacks that watch the run and may end it, each with a `name` (`early-stopping` or
    `package.module:Name`) with `options`."""
    track: tuple[Literal["tensorboard", "mlflow", "wandb"], ...] = ()
    """Trackers that also get the metrics; each needs the extra with its name."""
    data: DataSection = Field(default_factory=DataSection)
    model: ModelSection = Field(default_factory=ModelSection)
    training: TrainingSection = Field(default_factory=TrainingSection)
    radio: RadioSection = Field(default_factory=RadioSection)
    federation: FederationSection = Field(default_factory=FederationSection)
    server: ServerSection = Field(default_factory=ServerSection)
    population: PopulationSection = Field(default_factory=PopulationSection)
    time: TimeSection = Field(default_factory=TimeSection)
    energy: EnergySection = Field(default_factory=EnergySection)
    privacy: PrivacySection = Field(default_factory=PrivacySection)
    flower: FlowerSection = Field(default_factory=FlowerSection)

    @model_validator(mode="before")
    @classmethod
    def _constants_in_private(cls, values: Any) -> Any:
        """By default, a private run computes nothing from all devices' data."""
        if not isinstance(values, dict) or not _has_noise(values.get("privacy")):
            return values
        data = values.get("data", {})
        if isinstance(data, dict):
            return {**values, "data": {"normalise": "centred", **data}}
        if isinstance(data, DataSection) and "normalise" not in data.model_fields_set:
            return {**values, "data": data.model_copy(update={"normalise": "centred"})}
        return values

    @model_validator(mode="after")
    def _one_value_per_segment(self) -> Experiment:
        count = len(self.model.widths)
        for key, values in (
            ("training.weights", self.training.weights),
            ("radio.split", self.radio.split),
            ("radio.split_weights", self.radio.split_weights),
            ("radio.spectral_efficiency", self.radio.spectral_efficiency),
        ):
            if isinstance(values, tuple) and len(values) != count:
                raise ValueError(f"{key} has {len(values)} values for {count} widths; give {count}")
        return self

    @model_validator(mode="after")
    def _options_are_for_parts_of_your_own(self) -> Experiment:
        for key, name, options in (
            ("method_options", self.method, self.method_options),
            ("training.options", self.training.algorithm, self.training.options),
            ("radio.options", self.radio.model, self.radio.options),
        ):
            if options and name != OWN and module_of(name) is None:
                raise ValueError(
                    f"{key} works only with your own part, and {name!r} takes no options; omit it"
                )
        return self

    @model_validator(mode="after")
    def _convergence_can_be_reached(self) -> Experiment:
        section, never = self.federation, "federation.stop_on_convergence can never stop this run: "
        if not section.stop_on_convergence:
            return self
        window = section.convergence_window
        if window > self.rounds:
            raise ValueError(
                f"{never}a window of {window} rounds does not fit into {self.rounds}; give a "
                f"federation.convergence_window of {self.rounds} at most, or more rounds"
            )
        # the last round is always evaluated; no window can contain more evaluations than these
        evaluated_before = (self.rounds - 1) // section.evaluate_every * section.evaluate_every
        if evaluated_before == 0 or self.rounds - evaluated_before >= window:
            raise ValueError(
                f"{never}no window of {window} rounds has two evaluations; lower "
                "federation.evaluate_every or raise federation.convergence_window"
            )
        if section.convergence_accuracy == 1:
            raise ValueError(
                f"{never}no mean accuracy is above 1; give a federation.convergence_accuracy "
                "below 1"
            )
        return self

    @model_validator(mode="after")
    def _rate_of_all_segments(self) -> Experiment:
        rate = self.radio.spectral_efficiency
        total = sum(rate) if isinstance(rate, tuple) else rate * len(self.model.widths)
        if total > MOST_RATE:
            raise ValueError(
                f"radio.spectral_efficiency is {total:g} bit/s/Hz for all segments together; "
                f"it must be at most {MOST_RATE:g}"
            )
        return self

    @model_validator(mode="after")
    def _only_in_a_deployment(self) -> Experiment:
        for key, value in (("data.partition", "own"), ("radio.gains", "measured")):
            section, _, name = key.partition(".")
            if getattr(getattr(self, section), name) == value and self.engine != "flower":
                raise ValueError(f'{key} = "{value}" needs real devices; use the engine flower')
        return self

    @model_validator(mode="after")
    def _own_models_are_kept_here(self) -> Experiment:
        if self.radio.downlink_missed == "own-model" and self.engine == "flower":
            raise ValueError(
                'radio.downlink_missed = "own-model" needs an engine in this process: devices of '
                "the flower engine keep no model; use engine auto, torch or native"
            )
        return self

    @model_validator(mode="after")
    def _split_per_device_of_rayleigh_links(self) -> Experiment:
        if self.radio.split == "learned" and self.time.mode == "asynchronous":
            raise ValueError(
                'radio.split = "learned" learns round by round; choose another time.mode than '
                '"asynchronous", or radio.split = "per-device"'
            )
        if self.radio.split == "per-device" and self.radio.gains == "measured":
            raise ValueError(
                'radio.split = "per-device" needs the mean gain, which is unknown if devices '
                "measure their own; give one split for all devices"
            )
        return self

    @model_validator(mode="after")
    def _absent_devices_are_counted_alike(self) -> Experiment:
        if self.federation.absent == "stale":
            if self.time.mode == "asynchronous" or self.privacy.clip_norm is not None:
                raise ValueError(
                    'federation.absent = "stale" needs common rounds and no privacy: asynchronous '
                    "devices are never absent, and an update that is used again would need noise "
                    'again; take federation.absent = "skip"'
                )
        elif self.federation.absent != "skip" and (
            self.federation.average == "samples" or self.privacy.clip_norm is not None
        ):
            raise ValueError(
                "federation.absent needs federation.average = uniform and no privacy: the number "
                "of samples of an absent device, and the noise it needs, are unknown"
            )
        return self

    @model_validator(mode="after")
    def _time_suits_the_rest(self) -> Experiment:
        if self.time.mode != "wait-for-all" and self.privacy.clip_norm is not None:
            raise ValueError(
                'privacy needs time.mode = "wait-for-all": the time that a device takes depends on '
                "its number of samples, and so would the choice of devices"
            )
        if self.time.mode == "asynchronous" and self.radio.downlink == "lossy":
            raise ValueError(
                'radio.downlink = "lossy" is decided once per round, but asynchronous devices have '
                "no common rounds; choose another time.mode"
            )
        for key in ("first", "concurrency"):
            wanted = getattr(self.time, key)
            if wanted is not None and wanted > self.federation.devices:
                raise ValueError(
                    f"time.{key} is {wanted} and there are {self.federation.devices} devices; "
                    f"give at most {self.federation.devices}"
                )
        return self

    @model_validator(mode="after")
    def _equal_devices_in_private(self) -> Experiment:
        if self.privacy.clip_norm is not None and self.federation.average == "samples":
            raise ValueError(
                "privacy needs federation.average = uniform: otherwise the weight of a device "
                "would reveal its number of samples"
            )
        return self


def _has_noise(privacy: Any) -> bool:
    """True if a privacy section, validated or not, asks for noise; clipping alone hides nothing."""
    key = "noise_multiplier"
    value = privacy.get(key) if isinstance(privacy, dict) else getattr(privacy, key, None)
    return value not in (None, 0)
