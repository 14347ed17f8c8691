"""`[training]`: the local work of a device."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from slimfl.experiment.naming import module_of
from slimfl.experiment.sections.section import BelowOne, Count, Positive, Section

#: Maximum number of samples per device and round, whose order is drawn at once.
MOST_SAMPLES = 20_000_000


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
    """The local optimiser."""
    learning_rate: Positive = 1e-3
    """The learning rate of `constant`, and the start of `cosine`."""
    schedule: Literal["constant", "cosine", "theorem1"] = "constant"
    """How the learning rate changes over the rounds."""
    smoothness: Positive = 1.0
    """L of theorem 1's learning rate 2 / (mu t + 2 L - mu)."""
    strong_convexity: Positive = 1.0
    """mu of theorem 1's learning rate."""
    momentum: BelowOne = 0.9
    """SGD only."""
    nesterov: bool = False
    """SGD only."""
    weight_decay: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    """This value times the weight is added to the gradient."""
    betas: tuple[BelowOne, BelowOne] = (0.9, 0.999)
    """Adam only."""
    batch_size: Count = 16
    """Samples in one local step."""
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
