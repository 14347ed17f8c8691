"""Two ways to use your own data: arrays in memory, or a folder with four idx files."""

import hashlib
import struct
import tempfile
from pathlib import Path

import numpy as np

import slimfl
from slimfl.data import Dataset, Samples


def in_memory() -> Dataset:
    """Colour images of three classes: a square that is red, green or blue."""
    random = np.random.default_rng(7)

    def draw(count: int) -> Samples:
        labels = random.integers(3, size=count)
        images = random.integers(0, 120, size=(count, 16, 16, 3), dtype=np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[4:12, 4:12, label] += 100
        return Samples(images, labels)  # images are bytes [sample, row, column, channel]

    train, test = draw(1200), draw(300)
    digest = hashlib.sha256(train.images.tobytes() + train.labels.tobytes()).hexdigest()
    return Dataset("squares", train, test, classes=3, checksum=digest)


def write_idx(path: Path, array: np.ndarray) -> None:
    """MNIST's file format: two zero bytes, the type, the number of dimensions, the sizes, bytes."""
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    path.write_bytes(header + array.astype(np.uint8).tobytes())


def main() -> None:
    """Train on the arrays, then on the same samples read from files."""
    data = in_memory()
    common = slimfl.Experiment(rounds=5, training=slimfl.Training(steps=10, learning_rate=5e-3))
    print(common.change(data={"dataset": data}).run().final_accuracy)

    with tempfile.TemporaryDirectory() as folder:
        for prefix, samples in (("train", data.train), ("t10k", data.test)):
            write_idx(Path(folder, f"{prefix}-images-idx3-ubyte"), samples.images)
            write_idx(Path(folder, f"{prefix}-labels-idx1-ubyte"), samples.labels)
        # the same folder works on the command line: slimfl run --set data.dataset=FOLDER
        print(common.change(data={"dataset": folder}).run().final_accuracy)


if __name__ == "__main__":
    main()
