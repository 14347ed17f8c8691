"""Export the sub-networks of a run as self-contained files, each checked against PyTorch.

Every format is compared with PyTorch before anything is written. The manifest is written last: a
folder without it is no export.
"""

import hashlib
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any, Literal

import numpy as np
import torch
from jinja2 import Environment, FileSystemLoader
from numpy.typing import NDArray
from safetensors.torch import save as save_safetensors
from torch import nn

from slimfl.data import Dataset
from slimfl.errors import RequestError, RunError
from slimfl.experiment import round_identity
from slimfl.export.manifest import (
    DEFAULT_ENERGY,
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
    energy,
)
from slimfl.export.policy import WidthPolicy, probabilities_of
from slimfl.export.trained import (
    INPUT,
    Deployable,
    Trained,
    accuracy,
    channels_first,
    deployable,
    load_trained,
    torch_logits,
)
from slimfl.extras import why_missing
from slimfl.files import write_atomically
from slimfl.nn import multiply_adds
from slimfl.report.figures.drawing import save
from slimfl.report.figures.runs import energy_figure
from slimfl.runs.storage.run_folder import disk_errors

FORMATS = ("onnx", "safetensors")

CARD, FIGURE = "README.md", "accuracy-energy.svg"

#: Maximum difference of logits, relative to the largest if that exceeds 1.
TOLERANCE = 1e-5

#: Confidence thresholds at which the cascade is tried.
CONFIDENCES = (0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)

#: Calls of a network when its latency is measured, and before.
REPEATS, WARM_UP = 100, 10


def export(
    path: Path | str,
    out: Path | str | None = None,
    *,
    widths: tuple[float, ...] | None = None,
    formats: Sequence[str] = ("onnx",),
    int8: bool = False,
    energy_preset: str = DEFAULT_ENERGY,
    macs_per_s: float | None = None,
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
        formats: `onnx` or `safetensors` (weights alone), or both.
        int8: Quantise the ONNX files as well.
        energy_preset: What `joules_per_image` is computed with.
        macs_per_s: Multiply-adds per second of the device, for presets that depend on its speed.
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
    missing = "onnx" in formats and why_missing("export", "onnx", "onnxruntime", "onnxscript")
    if missing:
        raise RequestError(f"{missing}, or choose --format safetensors")
    chosen = energy(energy_preset, macs_per_s)
    path = Path(path)
    folder = Path(out) if out is not None else path / "export"
    if (folder / MANIFEST).exists():
        raise RequestError(
            f"{folder} already has an export; choose another --out, or delete that folder"
        )
    trained = load_trained(path, network=network, dataset=dataset, data_dir=data_dir)
    made = [
        one
        for width in trained.chosen(widths)
        for one in _export(trained, width, tuple(dict.fromkeys(formats)), int8, chosen)
    ]
    if measure:
        latencies = latencies_ms({one.model.name: one.once for one in made})
        for one in made:
            one.model = one.model.model_copy(update={"latency_ms": latencies[one.model.name]})
    runtime = "ONNX Runtime" if "onnx" in formats else "PyTorch"
    manifest = _manifest(trained, chosen, made, runtime, measure)
    points = [(one.label, one.joules_per_image, one.accuracy) for one in manifest.models]
    cascade = [(one.joules_per_image, one.accuracy) for one in manifest.cascade]
    with disk_errors(folder, "then export again"):
        folder.mkdir(parents=True, exist_ok=True)
        for one in made:
            for name, contents in one.contents.items():
                write_atomically(folder / name, contents)
        write_atomically(folder / CARD, model_card(manifest).encode())
        save(energy_figure(points, cascade, chosen.preset), folder / FIGURE)
        write_atomically(folder / MANIFEST, f"{manifest.model_dump_json(indent=2)}\n".encode())
    return manifest


@dataclass
class _Made:
    """One exported model, its files and its answers; nothing is written yet."""

    model: Model
    contents: dict[str, bytes]
    logits: NDArray[np.float32]
    once: Callable[[], object]
    """Classifies one image in the model's runtime."""


def _export(
    trained: Trained, width: float, formats: tuple[str, ...], with_int8: bool, chosen: Energy
) -> list[_Made]:
    """One width in all formats, each compared with PyTorch."""
    network = deployable(trained, width)
    images, labels = channels_first(trained.dataset.test.images), trained.dataset.test.labels
    expected = logits = torch_logits(network, images)
    once: Callable[[], object] = partial(torch_logits, network, images[:1])
    model = model_of(trained, width, network, chosen, accuracy(logits, labels))
    contents: dict[str, bytes] = {}
    if "onnx" in formats:
        from slimfl.export import onnx_file  # of the extra

        graph = onnx_file.onnx_model(network, trained.image_shape)
        contents[f"{model.name}.onnx"], logits, once = onnx_file.in_onnx_runtime(graph, images)
        difference = _difference(logits, expected)
        update = {"largest_difference": difference, "accuracy": accuracy(logits, labels)}
        model = model.model_copy(update=update)
    if "safetensors" in formats:
        contents[f"{model.name}.safetensors"] = _weights(network)
    made = [_Made(_with_files(model, contents), contents, logits, once)]
    if with_int8:
        small = onnx_file.quantised(graph, onnx_file.calibration_images(trained))
        name = f"{model.name}-int8"
        text, logits, once = onnx_file.in_onnx_runtime(small, images)
        right = accuracy(logits, labels)
        model = model_of(trained, width, network, chosen, right, "int8").model_copy(
            update={"accuracy_loss_points": round(100 * (made[0].model.accuracy - right), 6)}
        )
        contents = {f"{name}.onnx": text}
        made.append(_Made(_with_files(model, contents), contents, logits, once))
    return made


def model_of(
    trained: Trained,
    width: float,
    network: Deployable,
    chosen: Energy,
    right: float,
    precision: Literal["float32", "int8"] = "float32",
) -> Model:
    """The manifest's entry of a width.

    Args:
        trained: The run's model.
        width: The share of channels.
        network: The sub-network of that width.
        chosen: What the joules are computed with.
        right: The accuracy on the test images, from 0 to 1.
        precision: Of the weights.
    """
    parameters = list(network.parameters())
    bits = [p.numel() * (8 if precision == "int8" and p.ndim > 1 else 32) for p in parameters]
    work = multiply_adds(trained.network, width, trained.image_shape)
    return Model(
        name=f"{trained.model_name}-{width}x" + ("-int8" if precision == "int8" else ""),
        width=width,
        precision=precision,
        parameters=sum(p.numel() for p in parameters),
        multiply_adds=work,
        bits=sum(bits),
        accuracy=right,
        run_accuracy=trained.accuracy.get(f"{width}x"),
        joules_per_image=chosen.joules(work, precision),
        files=[],
    )


def models_of(path: Path, chosen: Energy, measure: bool, data_dir: Path | None) -> list[Model]:
    """The widths that a run evaluated, without files.

    Args:
        path: The run folder.
        chosen: What the joules are computed with.
        measure: Whether to measure latencies, which are PyTorch's.
        data_dir: Where the files of the run's dataset are.
    """
    trained = load_trained(path, data_dir=data_dir)
    if not trained.accuracy:
        raise RequestError(
            f"the model of {path} is of round {trained.round}, which was not evaluated, so its "
            "accuracy is not recorded; run `slimfl export`, which measures it, and pick from its "
            "folder"
        )
    image = channels_first(trained.dataset.test.images[:1])
    networks = {w: deployable(trained, w) for w in trained.widths if f"{w}x" in trained.accuracy}
    calls = {f"{w}x": partial(torch_logits, one, image) for w, one in networks.items()}
    times = latencies_ms(calls) if measure else {}
    return [
        model_of(trained, width, network, chosen, trained.accuracy[f"{width}x"]).model_copy(
            update={"latency_ms": times.get(f"{width}x")}
        )
        for width, network in networks.items()
    ]


def _with_files(model: Model, contents: Mapping[str, bytes]) -> Model:
    files = [
        File(
            format="onnx" if name.endswith(".onnx") else "safetensors",
            name=name,
            bytes=len(text),
            sha256=hashlib.sha256(text).hexdigest(),
        )
        for name, text in contents.items()
    ]
    return model.model_copy(update={"files": files})


def _cascade(made: Sequence[_Made], labels: NDArray[np.int64]) -> list[Cascade]:
    """Float32 cascades at several thresholds: narrowest first, widest when unsure."""
    whole = {one.model.width: one for one in made if one.model.precision == "float32"}
    if len(whole) < 2:
        return []
    costs = {width: one.model.joules_per_image for width, one in whole.items()}
    tables = {width: probabilities_of(one.logits) for width, one in whole.items()}
    classify = {width: table.__getitem__ for width, table in tables.items()}
    numbers = np.arange(len(labels))
    rows = []
    for confidence in CONFIDENCES:
        policy = WidthPolicy(costs, confidence=confidence)
        answers = policy.cascade(numbers, classify)
        right = int((answers.probabilities.argmax(1) == labels).sum())
        rows.append(
            Cascade(
                confidence=confidence,
                accuracy=right / len(numbers),
                full_share=float((answers.widths == policy.widths[-1]).mean()),
                joules_per_image=answers.cost,
            )
        )
    return rows


def _manifest(
    trained: Trained, chosen: Energy, made: Sequence[_Made], runtime: str, measured: bool
) -> Manifest:
    dataset = trained.dataset
    mean, deviation = dataset.normalisation(trained.experiment.data.normalise)
    channels, rows, columns = trained.image_shape
    packages = ["slimfl", "torch", *(("onnx", "onnxruntime") * (runtime == "ONNX Runtime"))]
    versions = {package: metadata.version(package) for package in packages}
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
            name=INPUT,
            channels=channels,
            rows=rows,
            columns=columns,
            normalisation=Normalisation(mean=mean.tolist(), deviation=deviation.tolist()),
        ),
        energy=chosen,
        latency=Latency(runtime=runtime, repeats=REPEATS) if measured else None,
        models=[one.model for one in made],
        cascade=_cascade(made, dataset.test.labels),
        versions={"python": platform.python_version(), **versions},
    )


def model_card(manifest: Manifest) -> str:
    """What users should know before they use the files, as Markdown."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), keep_trailing_newline=True
    )
    environment.filters |= {"code": _code, "microjoules": microjoules}
    widths = len({model.width for model in manifest.models})
    document: dict[str, Any] = dict(manifest)
    return environment.get_template("card.md.jinja").render(document, widths=widths)


def microjoules(joules: float) -> str:
    """The energy of an image for readers.

    >>> microjoules(4.3e-6), microjoules(3.1e-3)
    ('4.3 µJ', '3100 µJ')
    """
    value = 1e6 * joules
    return f"{value:.0f} µJ" if value >= 100 else f"{value:.3g} µJ"


def _code(text: str) -> str:
    """A name that may come from a stranger, as code, so that it cannot act as Markdown."""
    shown = "".join(c if c.isprintable() and c != "`" else "?" for c in text)
    return f"`{shown}`"


def latencies_ms(
    calls: Mapping[str, Callable[[], object]],
    repeats: int = REPEATS,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """The median time of each call on one thread.

    Args:
        calls: What to measure. Calls take turns, so that a busy machine slows all of them.
        repeats: Measured calls of each, after a warm-up.
        clock: Seconds.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for number in range(WARM_UP + repeats):
            for name, call in calls.items():
                began = clock()
                call()
                if number >= WARM_UP:
                    times[name].append(clock() - began)
    finally:
        torch.set_num_threads(before)
    return {name: 1e3 * median(values) for name, values in times.items()}


def _weights(network: Deployable) -> bytes:
    """The tensors of the plain network under its own names, each once."""
    inner = network.network
    stored = {**dict(inner.named_parameters()), **dict(inner.named_buffers())}
    names = inner.state_dict().keys()
    return save_safetensors(
        {name: value.detach().contiguous() for name, value in stored.items() if name in names}
    )


def _difference(found: NDArray[np.float32], expected: NDArray[np.float32]) -> float:
    """The largest difference of logits; raises an error if it is too large."""
    largest = max(1.0, float(np.abs(expected).max()))
    difference = float(np.abs(found - expected).max()) / largest
    if not difference <= TOLERANCE:
        raise RunError(
            f"ONNX Runtime differs from PyTorch by {difference:.1e} of the largest logit, more "
            f"than {TOLERANCE:g}; nothing was exported"
        )
    return difference
