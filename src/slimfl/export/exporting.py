"""Export the sub-networks of a run as self-contained files, each checked against PyTorch.

Every format is compared with PyTorch before anything is written. The manifest is written last: a
folder without it is no export.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load as load_safetensors
from safetensors.torch import save as save_safetensors
from torch import nn

from slimfl.data import Dataset
from slimfl.errors import RequestError, RunError
from slimfl.experiment import round_identity
from slimfl.export import energy, int8, onnx_file
from slimfl.export.card import CARD, model_card
from slimfl.export.deployable import (
    Deployable,
    accuracy,
    channels_first,
    deployable,
    torch_logits,
)
from slimfl.export.energy import EnergyPreset
from slimfl.export.latency import REPEATS, latencies_ms
from slimfl.export.manifest import (
    MANIFEST,
    Cascade,
    Energy,
    File,
    Input,
    Latency,
    Manifest,
    Model,
    Normalisation,
    Origin,
)
from slimfl.export.picking import from_export
from slimfl.export.policy import WidthPolicy, probabilities_of
from slimfl.export.torch_source import module_name, rebuilt, source
from slimfl.export.trained import Trained, load_trained
from slimfl.files import write_atomically
from slimfl.nn import multiply_adds
from slimfl.report.figures import save
from slimfl.report.figures.energy import energy_figure
from slimfl.runs.storage.run_folder import disk_errors

FORMATS = ("onnx", "torch", "safetensors")

FIGURE = "accuracy-energy.svg"

#: Maximum difference of logits, relative to the largest if that exceeds 1.
TOLERANCE = 1e-5

#: Confidence thresholds at which the cascade is tried.
CONFIDENCES = (0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)


def export(
    path: Path | str,
    out: Path | str | None = None,
    *,
    widths: tuple[float, ...] | None = None,
    formats: Sequence[str] = ("onnx",),
    int8: bool = False,
    energy_preset: str = energy.DEFAULT,
    measure: bool = False,
    network: nn.Module | None = None,
    dataset: Dataset | None = None,
    data_dir: Path | None = None,
) -> Manifest:
    """Export a run's model.

    Args:
        path: The run folder.
        out: A new folder for the files; `export` inside the run folder by default.
        widths: Those of the run to export; all by default.
        formats: `onnx`, `torch` (Python text and safetensors) or `safetensors` (weights alone).
        int8: Quantise the ONNX files as well.
        energy_preset: What `joules_per_image` is computed with.
        measure: Measure the latency of one image.
        network: The network, if the run was made with an object of its author's own.
        dataset: The data, if the run was made with an object of its author's own.
        data_dir: Where the files of the run's dataset are.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown or not formats:
        wrong = ", ".join(map(repr, unknown)) or "without a name"
        raise RequestError(f"there is no format {wrong}; choose from {', '.join(FORMATS)}")
    if int8 and "onnx" not in formats:
        raise RequestError("int8 files are ONNX files; add onnx to --format, or omit --int8")
    if "onnx" in formats:
        onnx_file.check_installed()
    chosen = energy.preset(energy_preset)
    path = Path(path)
    folder = Path(out) if out is not None else path / "export"
    if (folder / MANIFEST).exists():
        raise RequestError(
            f"{folder} already has an export; choose another --out, or delete that folder"
        )
    trained = load_trained(path, network=network, dataset=dataset, data_dir=data_dir)
    asked = trained.chosen(widths)
    work = _Work(trained, chosen, tuple(dict.fromkeys(formats)))
    made = [one for width in asked for one in work.export(width, int8)]
    latencies = latencies_ms({one.model.name: one.once for one in made}) if measure else {}
    models = [
        one.model.model_copy(update={"latency_ms": latencies.get(one.model.name)}) for one in made
    ]
    manifest = work.manifest(models, work.cascade(made), measure)
    with disk_errors(folder, "then export again"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, contents in work.contents.items():
            write_atomically(folder / name, contents)
        write_atomically(folder / CARD, model_card(manifest).encode())
        table = from_export(manifest)
        figure = energy_figure(table.points, table.cascade, table.energy_preset)
        save(figure, folder / FIGURE)
        write_atomically(folder / MANIFEST, f"{manifest.model_dump_json(indent=2)}\n".encode())
    return manifest


@dataclass(frozen=True)
class _Made:
    """One exported model with its answers."""

    model: Model
    logits: NDArray[np.float32]
    once: Callable[[], object]
    """Classifies one image in the model's runtime."""


class _Work:
    """The export of one run; nothing is written before everything is checked."""

    def __init__(self, trained: Trained, preset: EnergyPreset, formats: tuple[str, ...]) -> None:
        self.trained, self.preset, self.formats = trained, preset, formats
        self.contents: dict[str, bytes] = {}
        self.images = channels_first(trained.dataset.test.images)
        self.labels = trained.dataset.test.labels

    def export(self, width: float, with_int8: bool) -> list[_Made]:
        """One width in all formats."""
        network = deployable(self.trained, width)
        logits = torch_logits(network, self.images)
        name = f"{self.trained.model_name}-{width}x"
        files: list[File] = []
        values: dict[str, Any] = {}
        one = torch.from_numpy(self.images[:1])
        once: Callable[[], object] = partial(_without_gradients, network, one)
        result: list[_Made] = []
        if "onnx" in self.formats:
            graph = onnx_file.onnx_model(network, self.trained.image_shape)
            contents = graph.SerializeToString()
            running = onnx_file.session(contents)
            found = onnx_file.onnx_logits(running, self.images)
            values["largest_difference"] = _compare("ONNX Runtime", found, logits)
            logits = found
            files.append(self._file("onnx", f"{name}.onnx", contents))
            once = partial(onnx_file.onnx_logits, running, self.images[:1])
        if "torch" in self.formats:
            text = source(network, name)
            again = rebuilt(text)
            again.network.load_state_dict(load_safetensors(_weights(network)))
            _compare("the written module", torch_logits(again, self.images[:200]), logits[:200])
            files.append(self._file("torch", f"{module_name(name)}.py", text.encode()))
        if "torch" in self.formats or "safetensors" in self.formats:
            files.append(self._file("safetensors", f"{name}.safetensors", _weights(network)))
        result.append(_Made(self._model(width, name, network, logits, files, values), logits, once))
        if with_int8:
            small = int8.quantised(graph, int8.calibration_images(self.trained))
            result.append(self._int8(width, f"{name}-int8", network, small, result[0].model))
        return result

    def _int8(self, width: float, name: str, network: Deployable, graph: Any, full: Model) -> _Made:
        contents = graph.SerializeToString()
        running = onnx_file.session(contents)
        logits = onnx_file.onnx_logits(running, self.images)
        files = [self._file("onnx", f"{name}.onnx", contents)]
        lost = 100 * (full.accuracy - accuracy(logits, self.labels))
        values = {"precision": "int8", "accuracy_loss_points": round(lost, 6)}
        model = self._model(width, name, network, logits, files, values)
        return _Made(model, logits, partial(onnx_file.onnx_logits, running, self.images[:1]))

    def _model(
        self,
        width: float,
        name: str,
        network: Deployable,
        logits: NDArray[np.float32],
        files: list[File],
        values: dict[str, Any],
    ) -> Model:
        precision = values.get("precision", "float32")
        parameters = list(network.parameters())
        bits = [p.numel() * (8 if precision == "int8" and p.ndim > 1 else 32) for p in parameters]
        work = multiply_adds(self.trained.network, width, self.trained.image_shape)
        return Model(
            name=name,
            width=width,
            parameters=sum(p.numel() for p in parameters),
            multiply_adds=work,
            bits=sum(bits),
            accuracy=accuracy(logits, self.labels),
            run_accuracy=self.trained.accuracy.get(f"{width}x"),
            joules_per_image=self.preset.joules(work, precision),
            files=files,
            **{"precision": precision, **values},
        )

    def _file(self, format: Any, name: str, contents: bytes) -> File:
        self.contents[name] = contents
        digest = hashlib.sha256(contents).hexdigest()
        return File(format=format, name=name, bytes=len(contents), sha256=digest)

    def cascade(self, made: list[_Made]) -> list[Cascade]:
        """Float32 cascades at several thresholds: narrowest first, widest when unsure."""
        whole = {one.model.width: one for one in made if one.model.precision == "float32"}
        if len(whole) < 2:
            return []
        costs = {width: one.model.joules_per_image for width, one in whole.items()}
        tables = {width: probabilities_of(one.logits) for width, one in whole.items()}
        classify = {width: table.__getitem__ for width, table in tables.items()}
        numbers = np.arange(len(self.labels))
        rows = []
        for confidence in CONFIDENCES:
            policy = WidthPolicy(costs, confidence=confidence)
            answers = policy.cascade(numbers, classify)
            right = int((answers.probabilities.argmax(1) == self.labels).sum())
            rows.append(
                Cascade(
                    confidence=confidence,
                    accuracy=right / len(numbers),
                    full_share=float((answers.widths == policy.widths[-1]).mean()),
                    joules_per_image=answers.cost,
                )
            )
        return rows

    def manifest(self, models: list[Model], cascade: list[Cascade], measured: bool) -> Manifest:
        """The manifest of all models."""
        trained, dataset = self.trained, self.trained.dataset
        mean, deviation = dataset.normalisation(trained.experiment.data.normalise)
        channels, rows, columns = trained.image_shape
        runtime = "ONNX Runtime" if "onnx" in self.formats else "PyTorch"
        packages = ["slimfl", "torch", *(("onnx", "onnxruntime") * ("onnx" in self.formats))]
        return Manifest(
            model=trained.model_name,
            classes=dataset.classes,
            run=Origin(
                experiment_sha256=round_identity(trained.experiment),
                method=trained.experiment.method[:300],
                seed=trained.experiment.seed,
                round=trained.round,
                dataset=str(dataset.name)[:300],
                data_sha256=str(dataset.checksum)[:300],
                test_images=len(dataset.test),
            ),
            input=Input(
                name=onnx_file.INPUT,
                channels=channels,
                rows=rows,
                columns=columns,
                normalisation=Normalisation(mean=mean.tolist(), deviation=deviation.tolist()),
            ),
            energy=Energy(
                preset=self.preset.name,
                float32_j=self.preset.float32_j,
                int8_j=self.preset.int8_j,
                source=self.preset.source,
            ),
            latency=Latency(runtime=runtime, repeats=REPEATS) if measured else None,
            models=models,
            cascade=cascade,
            versions={
                "python": platform.python_version(),
                **{package: metadata.version(package) for package in packages},
            },
        )


def _weights(network: Deployable) -> bytes:
    """The tensors of the plain network under its own names, each once."""
    inner = network.network
    stored = {**dict(inner.named_parameters()), **dict(inner.named_buffers())}
    names = inner.state_dict().keys()
    return save_safetensors(
        {name: value.detach().contiguous() for name, value in stored.items() if name in names}
    )


def _without_gradients(network: nn.Module, images: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        logits: torch.Tensor = network(images)
    return logits


def _compare(what: str, found: NDArray[np.float32], expected: NDArray[np.float32]) -> float:
    """The largest difference of logits; raises an error if it is too large."""
    largest = max(1.0, float(np.abs(expected).max()))
    difference = float(np.abs(found - expected).max()) / largest
    if not difference <= TOLERANCE:
        raise RunError(
            f"{what} differs from PyTorch by {difference:.1e} of the largest logit, more than "
            f"{TOLERANCE:g}; nothing was exported"
        )
    return difference
