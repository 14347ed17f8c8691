"""ONNX files: written by torch's exporter, stripped of its notes, run by ONNX Runtime.

The int8 form is quantised statically, calibrated on training images. The ranges of activations
depend on the width, so every width is calibrated separately. Weights have one scale per channel, as
depthwise filters differ too much for a common one.
"""

import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from onnxruntime.quantization import (
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quant_pre_process,
    quantize_static,
)

from slimfl.errors import RunError
from slimfl.export.trained import BATCH, INPUT, Deployable, Trained, channels_first
from slimfl.rng import generator

#: The opset of torch's exporter, which runtimes have supported for years.
OPSET = 18

OUTPUT = "logits"

#: Number of training images for calibration.
CALIBRATION_IMAGES = 512


def onnx_model(network: Deployable, image_shape: tuple[int, int, int]) -> onnx.ModelProto:
    """A network as an ONNX graph for any number of images."""
    example = torch.zeros((2, *image_shape), dtype=torch.uint8)
    try:
        with _quiet(logging.getLogger("torch.onnx")):
            program: Any = torch.onnx.export(
                network,
                (example,),
                dynamo=True,
                opset_version=OPSET,
                input_names=[INPUT],
                output_names=[OUTPUT],
                dynamic_shapes={INPUT: {0: torch.export.Dim("batch")}},
                verbose=False,
            )
    except Exception as error:  # tracing may fail in any way on a user's own code
        reason = " ".join(str(error).split())[:300]
        raise RunError(f"torch cannot write this network as ONNX: {reason}") from error
    model: onnx.ModelProto = program.model_proto
    _strip(model)
    return model


def _strip(model: onnx.ModelProto) -> None:
    """Remove stack traces, which contain paths, and attributes with default values.

    Both are larger than the weights of a small network.
    """
    graph = model.graph
    for item in (model, graph, *graph.node, *graph.initializer, *graph.input, *graph.output):
        item.ClearField("metadata_props")
        item.ClearField("doc_string")
    graph.ClearField("value_info")
    for number, node in enumerate(graph.node):
        node.name = f"n{number}"  # the quantiser names nodes
        if node.op_type == "Conv":
            kept = [one for one in node.attribute if not _is_default(one)]
            node.ClearField("attribute")
            node.attribute.extend(kept)


def _is_default(attribute: onnx.AttributeProto) -> bool:
    """True if an attribute of a convolution has its default value."""
    match attribute.name:
        case "auto_pad":
            return bool(attribute.s == b"NOTSET")
        case "group":
            return bool(attribute.i == 1)
        case "strides" | "dilations":
            return set(attribute.ints) == {1}
        case "pads":
            return set(attribute.ints) == {0}
    return False


def in_onnx_runtime(
    graph: onnx.ModelProto, images: NDArray[np.uint8]
) -> tuple[bytes, NDArray[np.float32], Callable[[], object]]:
    """The file, the logits of all images, and a call for one image."""
    contents = graph.SerializeToString()
    running = session(contents)
    logits = onnx_logits(running, images)
    return contents, logits, partial(onnx_logits, running, images[:1])


def session(contents: bytes) -> onnxruntime.InferenceSession:
    """ONNX Runtime on one core."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(contents, options, providers=["CPUExecutionProvider"])


def onnx_logits(
    running: onnxruntime.InferenceSession, images: NDArray[np.uint8]
) -> NDArray[np.float32]:
    """The logits of images [sample, channel, row, column], in batches."""
    parts: list[NDArray[np.float32]] = [
        running.run([OUTPUT], {INPUT: images[start : start + BATCH]})[0]
        for start in range(0, len(images), BATCH)
    ]
    return np.concatenate(parts)


def calibration_images(trained: Trained) -> NDArray[np.uint8]:
    """Some training images, drawn by the run's seed."""
    images = trained.dataset.train.images
    numbers = generator(trained.experiment.seed, "int8 calibration")
    count = min(CALIBRATION_IMAGES, len(images))
    chosen = np.sort(numbers.choice(len(images), count, replace=False))
    return channels_first(images[chosen])


def quantised(model: onnx.ModelProto, images: NDArray[np.uint8]) -> onnx.ModelProto:
    """The graph with int8 weights and activations (QDQ); the normalisation stays in float."""
    with tempfile.TemporaryDirectory() as folder, _quiet(logging.root):
        plain, prepared, result = (Path(folder) / f"{n}.onnx" for n in ("plain", "ready", "int8"))
        try:
            # as a file: for a model in memory, the quantiser stores the weights in a file that it
            # then loses
            onnx.save(model, plain)
            quant_pre_process(str(plain), str(prepared), skip_symbolic_shape=True)
            quantize_static(
                str(prepared),
                str(result),
                _Calibration(images),
                quant_format=QuantFormat.QDQ,
                activation_type=QuantType.QInt8,
                weight_type=QuantType.QInt8,
                per_channel=True,
                calibrate_method=CalibrationMethod.MinMax,
                nodes_to_exclude=_up_to_the_first_weights(onnx.load(prepared)),
            )
            return onnx.load(result)
        except Exception as error:  # the quantiser may fail in any way on a user's own network
            reason = " ".join(str(error).split())[:300]
            raise RunError(f"ONNX Runtime cannot quantise this network: {reason}") from error


def _up_to_the_first_weights(model: onnx.ModelProto) -> list[str]:
    """The nodes of the normalisation, whose input already is bytes."""
    names = []
    for node in model.graph.node:
        if node.op_type in ("Conv", "Gemm", "MatMul"):
            break
        names.append(node.name)
    return names


class _Calibration:
    """Calibration batches in the interface of ONNX Runtime."""

    def __init__(self, images: NDArray[np.uint8]) -> None:
        self.images, self.start = images, 0

    def get_next(self) -> dict[str, NDArray[np.uint8]] | None:
        batch = self.images[self.start : self.start + BATCH]
        self.start += BATCH
        return {INPUT: batch} if len(batch) else None

    def rewind(self) -> None:
        self.start = 0


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Suppress remarks about packages and interfaces that do not concern the user."""
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
