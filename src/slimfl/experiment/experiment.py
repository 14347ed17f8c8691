"""One experiment: its own keys, its sections, and what must fit between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, field_validator, model_validator

from slimfl.errors import RequestError
from slimfl.experiment.naming import module_of
from slimfl.experiment.sections.learning import DataSection, ModelSection, TrainingSection
from slimfl.experiment.sections.population import PopulationSection
from slimfl.experiment.sections.radio import MOST_RATE, RadioSection
from slimfl.experiment.sections.rounds import (
    CallbackSection,
    EnergySection,
    FederationSection,
    FlowerSection,
    PrivacySection,
    ServerSection,
    StageSection,
    TimeSection,
)
from slimfl.experiment.sections.section import OWN, Need, Own, Part, Section

if TYPE_CHECKING:
    from slimfl.runs.callbacks import Callback
    from slimfl.runs.run import Run

#: Keys whose value names a part: built-in or `package.module:Name`, see `experiment.naming`.
NAMES = (
    "method",
    "model.name",
    "training.algorithm",
    "radio.model",
    "data.dataset",
    "callbacks",
    "stages",
)

#: Modes of the clock with common rounds.
SYNCHRONOUS = ("wait-for-all", "deadline", "first", "over-commit")


class Experiment(Section):
    """One method under one seed: all that is needed to repeat a run."""

    method: Part = "slimfl"
    """`slimfl`, `vanilla-0.5x` (any width of the model), a rival such as `heterofl`, or
    `package.module:Name`; `vanilla-all` is one run of Vanilla FL per width, the paper's
    `vanilla-1.5x`; in Python also a method itself."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Fixes every random draw: partition, initialisation, batches, fading."""
    rounds: Annotated[int, Field(ge=1, le=10_000_000)] = 30
    """Number of rounds."""
    engine: Literal["auto", "torch", "native", "flower"] = "auto"
    """The engine that trains; `auto` chooses the fastest that can run the experiment."""
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
    stages: tuple[StageSection, ...] = ()
    """What happens to an upload between the device and the server, besides the radio: each a `name`
    (`package.module:Name`) with `options`, in the order in which a device applies them."""
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
    needs: ClassVar = (
        Need("data.partition", {"engine": ("flower",)}, of=("own",)),
        Need("radio.gains", {"engine": ("flower",)}, of=("measured",)),
        Need(
            "radio.downlink_missed", {"engine": ("auto", "torch", "native")}, of=("own-model",),
            why="devices of the flower engine keep no model",
        ),
        Need("radio.split", {"time.mode": SYNCHRONOUS}, of=("learned",),
             why="it learns round by round"),
        Need(
            "federation.absent", {"time.mode": SYNCHRONOUS, "privacy.clip_norm": (None,)},
            of=("stale",),
            why="an earlier update stands in for one of a common round, and would need noise again",
        ),
        Need(
            "federation.absent", {"federation.average": ("uniform",), "privacy.clip_norm": (None,)},
            of=("old", "zero"),
            why="the number of samples of an absent device, and the noise it needs, are unknown",
        ),
        Need(
            "time.buffer_counts", {"federation.absent": ("skip",)}, of=("arrivals",),
            why="all others count uploads that were lost",
        ),
        Need(
            "privacy.clip_norm",
            {"time.mode": ("wait-for-all",), "federation.average": ("uniform",)},
            why="the time and the weight of a device would reveal its number of samples",
        ),
        Need(
            "time.mode", {"radio.downlink": ("perfect",), "radio.users_per_slot": (1,)},
            of=("asynchronous",),
            why="asynchronous devices have no common rounds",
        ),
    )  # fmt: skip

    @classmethod
    def read(cls, source: Path | str | dict[str, Any], **changes: Any) -> Experiment:
        """The one experiment that a TOML file or a dictionary describes, after some changes."""
        from slimfl.experiment.loading import load

        experiments = load(source, changes)
        if len(experiments) != 1:
            raise RequestError(
                f"this describes {len(experiments)} experiments, one per value of its lists; "
                "slimfl.compare runs several"
            )
        return experiments[0]

    def change(self, **changes: Any) -> Experiment:
        """The same experiment with other values: `experiment.change(radio={"noise_dbm": -41})`."""
        from slimfl.experiment.loading import load

        return load(self, changes)[0]

    def run(
        self,
        out: Path | str | None = None,
        *,
        callbacks: Sequence[Callback | str | dict[str, Any]] = (),
        progress: bool = False,
        trust: Iterable[str] = (),
    ) -> Run:
        """Run it to its end and return the results.

        Args:
            out: The run folder to write; without it the run stays in memory.
            callbacks: Who watches the run: objects, or names as in the configuration.
            progress: Show how far the run is, in a terminal or in a notebook.
            trust: Modules that a `package.module:Name` may be imported from.
        """
        from slimfl.runs.api import run

        return run(self, out, callbacks=callbacks, progress=progress, trust=trust)

    def own_parts(self) -> dict[str, Any]:
        """The parts that were given as objects, as `Simulation` takes them."""
        named = {
            "dataset": self.data.dataset,
            "network": self.model.name,
            "channel": self.radio.model,
            "method": self.method,
        }
        return {kind: name.part for kind, name in named.items() if isinstance(name, Own)}

    @field_validator("method")
    @classmethod
    def _as_it_calls_itself(cls, method: Any) -> Any:
        return Own(method.part, method.part.name) if _has_name(method) else method

    @model_validator(mode="wrap")
    @classmethod
    def _constants_in_private(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """By default, a private run computes nothing from all devices' data."""
        if not isinstance(values, dict) or not _has_noise(values.get("privacy")):
            return handler(values)
        data = values.get("data", {})
        given = data.model_fields_set if isinstance(data, DataSection) else data
        if not isinstance(given, dict | set) or "normalise" in given:
            return handler(values)
        constants = {"normalise": "centred"}
        private = (
            {**data, **constants} if isinstance(data, dict) else data.model_copy(update=constants)
        )
        made = handler({**values, "data": private})
        # without the noise it is no default any more
        made.data.model_fields_set.discard("normalise")
        return made

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
    def _tests_are_within_the_run(self) -> Experiment:
        for key in ("evaluate_all_from", "average_last"):
            value = getattr(self.federation, key)
            if value is not None and value > self.rounds:
                raise ValueError(
                    f"federation.{key} is {value} and the run has {self.rounds} rounds; give at "
                    f"most {self.rounds}, or more rounds"
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
        before = range(self.rounds - 1, 0, -1)
        evaluated_before = next((number for number in before if section.tests(number)), 0)
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
    def _time_suits_the_rest(self) -> Experiment:
        if self.time.mode == "asynchronous" and self.radio.changes_with_memory is not None:
            key, without = self.radio.changes_with_memory
            raise ValueError(
                f"{key} correlates common rounds, but asynchronous devices have none; set it to "
                f"{without}, or choose another time.mode"
            )
        for key in ("first", "concurrency"):
            wanted = getattr(self.time, key)
            if wanted is not None and wanted > self.federation.devices:
                raise ValueError(
                    f"time.{key} is {wanted} and there are {self.federation.devices} devices; "
                    f"give at most {self.federation.devices}"
                )
        return self


def _has_name(method: Any) -> bool:
    return isinstance(method, Own) and isinstance(getattr(method.part, "name", None), str)


def _has_noise(privacy: Any) -> bool:
    """True if a privacy section, validated or not, asks for noise; clipping alone hides nothing."""
    key = "noise_multiplier"
    value = privacy.get(key) if isinstance(privacy, dict) else getattr(privacy, key, None)
    return value not in (None, 0)
