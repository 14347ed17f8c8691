"""Static int8 quantisation of an ONNX graph, calibrated on training images.

Activations have other ranges at every width, so every width is calibrated on its own. Weights have
one scale per channel: depthwise filters differ too much for a common one.
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

#: Training images whose activations set the ranges.
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
            # as a file: of a model in memory it puts the weights into a file that it then misses
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
        except Exception as error:  # whatever the quantiser makes of a user's own network
            reason = " ".join(str(error).split())[:300]
            raise RunError(f"ONNX Runtime cannot quantise this network: {reason}") from error


def _up_to_the_first_weights(model: onnx.ModelProto) -> list[str]:
    """The nodes of the normalisation: their input is bytes already."""
    names = []
    for node in model.graph.node:
        if node.op_type in ("Conv", "Gemm", "MatMul"):
            break
        names.append(node.name)
    return names


class _Reader:
    """Calibration batches, as ONNX Runtime asks for them."""

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
    """Without the quantiser's advice, which it gives through the root logger."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
