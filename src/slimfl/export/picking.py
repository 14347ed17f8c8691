"""Which width to use under limits: a pure function over the models of an export or a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from slimfl.errors import RequestError
from slimfl.export.manifest import DEFAULT_ENERGY, MANIFEST, Model, energy, read_manifest


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

    def broken_by(self, choice: Model) -> list[str]:
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


def why_not(choice: Model, choices: Sequence[Model], limits: Limits) -> list[str]:
    """Why a choice is not eligible, in words; empty if it is.

    Args:
        choice: One of the models.
        choices: All of them, as int8 must gain something over float32.
        limits: What the user asked for.
    """
    words = limits.broken_by(choice)
    same_width = [other for other in choices if other.width == choice.width]
    if choice.precision == "int8" and any(_gains_nothing(choice, other) for other in same_width):
        words.append("its file is neither smaller nor faster than that of float32")
    return words


def _gains_nothing(int8: Model, other: Model) -> bool:
    """True if the other is float32, not larger, and not measurably slower."""
    if other.precision != "float32" or int8.onnx_bytes is None or other.onnx_bytes is None:
        return False
    if int8.latency_ms is not None and other.latency_ms is not None:
        return int8.onnx_bytes >= other.onnx_bytes and int8.latency_ms >= other.latency_ms
    return int8.onnx_bytes >= other.onnx_bytes


@dataclass(frozen=True)
class Picked:
    """The choice and its reason."""

    choice: Model
    why: str


def pick(choices: Sequence[Model], limits: Limits) -> Picked:
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

    def cost(choice: Model) -> tuple[float, int]:
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
class Offer:
    """The models to choose from, and the origin of their numbers."""

    models: list[Model]
    energy_preset: str
    latency_runtime: str | None
    cascade: list[tuple[float, float]]
    """Joules per image and accuracy of an export's cascade."""


def offered(
    path: Path,
    energy_preset: str | None = None,
    *,
    macs_per_s: float | None = None,
    measure: bool = False,
    data_dir: Path | None = None,
) -> Offer:
    """The models of an export or of a run folder.

    Args:
        path: The folder. Of a run, the accuracies are those that it recorded for its model's round.
        energy_preset: What `joules_per_image` is computed with; an export has its own.
        macs_per_s: Multiply-adds per second of the device, for presets that depend on its speed.
        measure: Measure the latency of a run's widths.
        data_dir: Where the files of a run's dataset are.
    """
    if (path / MANIFEST).is_file():
        if energy_preset is not None or macs_per_s is not None:
            raise RequestError("an export already has an energy preset; omit --energy")
        manifest = read_manifest(path)
        runtime = manifest.latency.runtime if manifest.latency else None
        cascade = [(one.joules_per_image, one.accuracy) for one in manifest.cascade]
        return Offer(manifest.models, manifest.energy.preset, runtime, cascade)
    from slimfl.export.exporting import models_of  # picking from an export needs no torch

    chosen = energy(energy_preset or DEFAULT_ENERGY, macs_per_s)
    models = models_of(path, chosen, measure, data_dir)
    return Offer(models, chosen.preset, "PyTorch" if measure else None, [])
