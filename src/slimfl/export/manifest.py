"""`manifest.json`: the contents of an export, one entry per width and precision."""

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pydantic
from pydantic import BaseModel, ConfigDict, Field

from slimfl.devices.computing_energy import ENERGY_PRESETS, NONE
from slimfl.errors import RequestError
from slimfl.files import UnreadableError, open_plain, parse_json

MANIFEST = "manifest.json"

#: Maximum size of a manifest; typical ones have a few thousand bytes.
MOST_BYTES = 1_000_000

#: The energy preset of an export, unless another is chosen.
DEFAULT_ENERGY = "horowitz-45nm"

Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=2**53)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")]
Text = Annotated[str, Field(max_length=300)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class File(_Strict):
    """One file of an entry."""

    format: Literal["onnx", "safetensors"]
    name: Name
    bytes: Count
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Model(_Strict):
    """One width at one precision."""

    name: Name
    width: Annotated[float, Field(gt=0, le=1)]
    precision: Literal["float32", "int8"]
    parameters: Count
    multiply_adds: Count
    """Per image."""
    bits: Count
    """Size of the parameters: 32 bits each; in int8, 8 per weight and 32 per bias."""
    accuracy: Share
    """Accuracy of the exported network on the test images."""
    run_accuracy: Share | None = None
    """Accuracy that the run recorded for this width in the model's round."""
    accuracy_loss_points: float | None = None
    """int8 only: loss of accuracy against float32 in points."""
    joules_per_image: Positive
    latency_ms: Positive | None = None
    """Median of one image; `latency` has the runtime."""
    largest_difference: float | None = None
    """Between the logits of ONNX Runtime and PyTorch, relative to the largest if that exceeds 1."""
    files: list[File]

    @property
    def label(self) -> str:
        """`0.5x` or `0.5x int8`."""
        return f"{self.width}x" + (" int8" if self.precision == "int8" else "")

    @property
    def onnx_bytes(self) -> int | None:
        """Size of the ONNX file, if there is one."""
        return next((file.bytes for file in self.files if file.format == "onnx"), None)


class Cascade(_Strict):
    """Narrow first, full when unsure, on the test images."""

    confidence: Share
    accuracy: Share
    full_share: Share
    """Share of images for which the full width was used."""
    joules_per_image: Positive


class Normalisation(_Strict):
    """(pixels / 255 - mean) / deviation, per channel."""

    mean: list[float]
    deviation: list[float]
    folded_into: list[Literal["onnx"]] = ["onnx"]
    """The formats whose network includes it; for safetensors, the caller must normalise."""


class Input(_Strict):
    """The input of a network: unsigned bytes [batch, channel, row, column]."""

    name: Text
    type: Literal["uint8"] = "uint8"
    channels: Count
    rows: Count
    columns: Count
    normalisation: Normalisation


class Energy(_Strict):
    """The preset behind `joules_per_image`, in joules per multiply-add.

    A convention that must be named, not a measurement: presets differ by two to three orders of
    magnitude. Ratios between widths are the same in all of them. Memory accesses are left out.
    """

    preset: Text
    float32_j: Positive
    int8_j: Positive
    source: Text

    def joules(self, multiply_adds: int, precision: str = "float32") -> float:
        """Energy of one image."""
        return multiply_adds * (self.int8_j if precision == "int8" else self.float32_j)


def energy(preset: str, macs_per_s: float | None = None) -> Energy:
    """A preset of the simulation, for one image on a device.

    Args:
        preset: A name of `slimfl.devices.computing_energy.ENERGY_PRESETS`.
        macs_per_s: Multiply-adds per second of the device, for presets that depend on its speed.

    >>> f"{energy('kappa-1e-28', macs_per_s=1e9).float32_j:.3g}"
    '1e-10'
    """
    names = [name for name in ENERGY_PRESETS if name != NONE]
    if preset not in names:
        raise RequestError(f"there is no energy preset {preset!r}; choose {', '.join(names)}")
    model = ENERGY_PRESETS[preset]
    if macs_per_s is not None and not 0 < macs_per_s < float("inf"):
        raise RequestError(f"--macs-per-s takes a number above 0, not {macs_per_s}")
    if model.needs_speed and macs_per_s is None:
        raise RequestError(
            f"the energy preset {preset!r} depends on the speed of the device; give it with "
            "--macs-per-s, for example 1e9"
        )
    joules = float(model.joule_per_mac(np.array([macs_per_s or 1.0]))[0])
    int8 = model.int8_joule
    at = f", {macs_per_s:g} multiply-adds per second" if model.needs_speed else ""
    return Energy(
        preset=preset,
        float32_j=joules,
        int8_j=joules if int8 is None else int8,
        source=model.source + at,
    )


class Latency(_Strict):
    """How latencies were measured: batches of one image, on one thread, interleaved."""

    runtime: Text
    repeats: Count


class Origin(_Strict):
    """The run that the model comes from."""

    experiment_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """Digest of what its rounds depend on: equal digests mean equal rounds."""
    method: Text
    seed: int
    round: Count
    dataset: Text
    data_sha256: Text
    test_images: Count


class Manifest(_Strict):
    """The document."""

    kind: Literal["slimfl export"] = "slimfl export"
    version: Literal[1] = 1
    model: Name
    classes: Count
    run: Origin
    input: Input
    energy: Energy
    latency: Latency | None
    models: Annotated[list[Model], Field(min_length=1, max_length=1000)]
    cascade: list[Cascade]
    versions: dict[str, Text]


def read_manifest(folder: Path) -> Manifest:
    """The manifest in a folder, which may come from a stranger."""
    path = folder / MANIFEST
    with open_plain(path, "rb") as file:
        raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise RequestError(f"{path} is too large for a manifest")
    try:
        return Manifest.model_validate(parse_json(raw))
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except UnreadableError as error:
        reason = str(error)
    raise RequestError(f"{path} is not a manifest of slimfl: {reason}")
