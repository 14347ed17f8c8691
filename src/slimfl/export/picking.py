"""Which width to use under limits: a pure function over a table of costs and accuracies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from slimfl.errors import RequestError
from slimfl.export import energy
from slimfl.export.manifest import Manifest


@dataclass(frozen=True)
class Choice:
    """One width at one precision."""

    name: str
    width: float
    parameters: int
    multiply_adds: int
    joules_per_image: float
    accuracy: float
    precision: str = "float32"
    latency_ms: float | None = None
    file_bytes: int | None = None
    """Size of the ONNX file, if there is one."""


@dataclass(frozen=True)
class Limits:
    """The limits of a choice; None for no limit."""

    max_macs: float | None = None
    max_energy_j: float | None = None
    min_accuracy: float | None = None
    max_latency_ms: float | None = None

    def check(self) -> None:
        """Refuse limits that make no sense, or no limits at all."""
        given = {key: value for key, value in asdict(self).items() if value is not None}
        options = {key: f"--{key.replace('_', '-')}" for key in asdict(self)}
        if not given:
            raise RequestError(f"give at least one limit: {', '.join(options.values())}")
        for key, value in given.items():
            if not (math.isfinite(value) and value > 0):
                raise RequestError(f"{options[key]} takes a number above 0, not {value}")
        if self.min_accuracy is not None and self.min_accuracy > 1:
            raise RequestError(
                f"--min-accuracy takes a number from 0 to 1, not {self.min_accuracy}"
            )

    def broken_by(self, choice: Choice) -> list[str]:
        """Why a choice does not fit, in words; empty if it does."""
        words = []
        if self.max_macs is not None and choice.multiply_adds > self.max_macs:
            words.append(f"{choice.multiply_adds:,} multiply-adds exceed {self.max_macs:,.0f}")
        if self.max_energy_j is not None and choice.joules_per_image > self.max_energy_j:
            words.append(f"{choice.joules_per_image:.3g} J per image exceed {self.max_energy_j:g}")
        if self.max_latency_ms is not None:
            if choice.latency_ms is None:
                words.append("its latency was not measured")
            elif choice.latency_ms > self.max_latency_ms:
                words.append(f"{choice.latency_ms:.3g} ms exceed {self.max_latency_ms:g}")
        if self.min_accuracy is not None and choice.accuracy < self.min_accuracy:
            words.append(f"accuracy {choice.accuracy:.4f} is below {self.min_accuracy:g}")
        return words


def why_not(choice: Choice, choices: Sequence[Choice], limits: Limits) -> list[str]:
    """Why one of some choices is not eligible, in words; empty if it is."""
    words = limits.broken_by(choice)
    same_width = [other for other in choices if other.width == choice.width]
    if choice.precision == "int8" and any(_gains_nothing(choice, other) for other in same_width):
        words.append("its file is neither smaller nor faster than that of float32")
    return words


def _gains_nothing(int8: Choice, other: Choice) -> bool:
    """True if the other is float32, not larger, and not measurably slower."""
    if other.precision != "float32" or int8.file_bytes is None or other.file_bytes is None:
        return False
    if int8.latency_ms is not None and other.latency_ms is not None:
        return int8.file_bytes >= other.file_bytes and int8.latency_ms >= other.latency_ms
    return int8.file_bytes >= other.file_bytes


@dataclass(frozen=True)
class Picked:
    """The choice and its reason."""

    choice: Choice
    why: str


def pick(choices: Sequence[Choice], limits: Limits) -> Picked:
    """The cheapest that is accurate enough, or the most accurate within the limits.

    Cheaper means less energy, then fewer multiply-adds. An int8 file that is neither smaller nor
    faster than float32 is not eligible: the joules of int8 are those of hardware made for it, and
    on such a network the rest of the file outweighs them.
    """
    limits.check()
    against = [why_not(choice, choices, limits) for choice in choices]
    fitting = [choice for choice, words in zip(choices, against, strict=True) if not words]
    if not fitting:
        told = "; ".join(
            f"{choice.name}: {', '.join(words)}"
            for choice, words in zip(choices, against, strict=True)
        )
        raise RequestError(f"no width meets these limits ({told}); relax one of them")

    def cost(choice: Choice) -> tuple[float, int]:
        return choice.joules_per_image, choice.multiply_adds

    count = f"{len(fitting)} (of {len(choices)})"
    if limits.min_accuracy is not None:
        best = min(fitting, key=cost)
        reason = f"needs the least energy of the {count} that keep the limits"
    else:
        best = min(fitting, key=lambda choice: (-choice.accuracy, *cost(choice)))
        reason = f"is the most accurate of the {count} that keep the limits"
    if len(fitting) == 1:
        reason = f"is the only one of {len(choices)} that keeps the limits"
    if len(choices) == 1:
        reason = "keeps the limits"
    return Picked(
        best,
        f"{best.name} {reason}: accuracy {best.accuracy:.4f}, {best.multiply_adds:,} multiply-adds "
        f"and {best.joules_per_image:.3g} J per image",
    )


@dataclass(frozen=True)
class Table:
    """Choices and the origin of their numbers."""

    choices: list[Choice]
    energy_preset: str
    latency_runtime: str | None
    cascade: list[tuple[float, float]]
    """Joules per image and accuracy of an export's cascade."""

    @property
    def points(self) -> list[tuple[str, float, float]]:
        """The points of a figure: name, joules per image and accuracy."""
        return [
            (width_label(one.width, one.precision), one.joules_per_image, one.accuracy)
            for one in self.choices
        ]


def width_label(width: float, precision: str) -> str:
    """`0.5x` or `0.5x int8`."""
    return f"{width}x" if precision == "float32" else f"{width}x {precision}"


def from_export(manifest: Manifest) -> Table:
    """The table of an export."""
    choices = [
        Choice(
            model.name,
            model.width,
            model.parameters,
            model.multiply_adds,
            model.joules_per_image,
            model.accuracy,
            model.precision,
            model.latency_ms,
            next((file.bytes for file in model.files if file.format == "onnx"), None),
        )
        for model in manifest.models
    ]
    runtime = manifest.latency.runtime if manifest.latency else None
    cascade = [(one.joules_per_image, one.accuracy) for one in manifest.cascade]
    return Table(choices, manifest.energy.preset, runtime, cascade)


def from_run(
    path: Path,
    energy_preset: str = energy.DEFAULT,
    *,
    measure: bool = False,
    data_dir: Path | None = None,
) -> Table:
    """The table of a run: the accuracies in its model's round, and the costs of the widths."""
    import torch

    from slimfl.export.deployable import channels_first, deployable
    from slimfl.export.latency import latencies_ms
    from slimfl.export.trained import load_trained
    from slimfl.nn import cost

    preset = energy.preset(energy_preset)
    trained = load_trained(path, data_dir=data_dir)
    if not trained.accuracy:
        raise RequestError(
            f"the model of {path} is of round {trained.round}, which was not evaluated, so its "
            "accuracy is not recorded; run `slimfl export`, which measures it, and pick from its "
            "folder"
        )
    times: dict[str, float] = {}
    if measure:
        image = torch.from_numpy(channels_first(trained.dataset.test.images[:1]))
        networks = {f"{w}x": deployable(trained, w) for w in trained.widths}
        times = latencies_ms({name: partial(one, image) for name, one in networks.items()})
    rows = cost(trained.network, trained.experiment.model.widths, trained.image_shape)
    choices = [
        Choice(
            f"{trained.model_name}-{row.width}x",
            row.width,
            row.parameters,
            row.multiply_adds,
            preset.joules(row.multiply_adds),
            trained.accuracy[f"{row.width}x"],
            latency_ms=times.get(f"{row.width}x"),
        )
        for row in rows
        if f"{row.width}x" in trained.accuracy  # a method may train fewer widths
    ]
    return Table(choices, preset.name, "PyTorch" if measure else None, [])
