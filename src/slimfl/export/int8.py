"""Static int8 quantisation of an ONNX graph, calibrated on training images.

The ranges of activations depend on the width, so every width is calibrated separately. Weights have
one scale per channel, as depthwise filters differ too much for a common one.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RunError
from slimfl.export.deployable import BATCH, channels_first
from slimfl.export.onnx_file import INPUT
from slimfl.export.trained import Trained
from slimfl.rng import generator

if TYPE_CHECKING:
    import onnx

#: Number of training images for calibration.
CALIBRATION_IMAGES = 512


def calibration_images(trained: Trained) -> NDArray[np.uint8]:
    """Some training images, drawn by the run's seed."""
    images = trained.dataset.train.images
    numbers = generator(trained.experiment.seed, "int8 calibration")
    count = min(CALIBRATION_IMAGES, len(images))
    chosen = np.sort(numbers.choice(len(images), count, replace=False))
    return channels_first(images[chosen])


def quantised(model: onnx.ModelProto, images: NDArray[np.uint8]) -> onnx.ModelProto:
    """The graph with int8 weights and activations (QDQ); the normalisation stays in float."""
    import onnx
    from onnxruntime.quantization import (
        CalibrationMethod,
        QuantFormat,
        QuantType,
        quant_pre_process,
        quantize_static,
    )

    with tempfile.TemporaryDirectory() as folder, _quiet():
        plain, prepared, result = (Path(folder) / f"{n}.onnx" for n in ("plain", "ready", "int8"))
        try:
            # as a file: for a model in memory, the quantiser stores the weights in a file that it
            # then loses
            onnx.save(model, plain)
            quant_pre_process(str(plain), str(prepared), skip_symbolic_shape=True)
            quantize_static(
                str(prepared),
                str(result),
                _Reader(images),
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


class _Reader:
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
def _quiet() -> Iterator[None]:
    """Suppress the quantiser's advice, which goes to the root logger."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
