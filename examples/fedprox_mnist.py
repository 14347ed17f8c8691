"""FedProx on MNIST with stragglers: a published result, run with this package.

T. Li et al., "Federated optimization in heterogeneous networks", MLSys 2020, figure 1, as Flower's
baseline `fedprox` sets it up: logistic regression, 1,000 devices with two classes each and unequal
numbers of samples, 10 devices per round, 100 rounds of up to 10 local epochs of SGD (learning rate
0.03, batches of 10, weight decay 0.001). In every round each device may be a straggler, with time
for only 1 to 9 epochs. FedAvg drops what a straggler has done; FedProx keeps it, and adds
mu/2 |w - w_t|^2 to the loss. There is no radio: every upload arrives.

    python examples/fedprox_mnist.py --data-dir FOLDER     # with MNIST's four files

It also shows a method that says how much of the local work a device does (`Work.effort`), and
data that say which device holds each sample (`data.partition = "natural"`).
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray

import slimfl
from slimfl.data import Dataset, load
from slimfl.devices import Device
from slimfl.methods import Merge, Random, RunningMean, State, Work
from slimfl.nn import Vector

EPOCHS, CLASSES_PER_DEVICE, LEAST = 10, 2, 10
#: Final accuracies read off the figure of Flower's baseline, by the share of stragglers.
PUBLISHED = {
    0.0: {"FedAvg": "0.83", "FedProx, mu = 0": "0.78", "FedProx, mu = 2": "0.85"},
    0.9: {"FedAvg": "0.60-0.65", "FedProx, mu = 0": "0.72-0.80", "FedProx, mu = 2": "0.85"},
}


@dataclass(frozen=True)
class Stragglers:
    """Federated averaging in which some devices have time for a part of their work only."""

    chance: float
    """That a device is a straggler in a round."""
    drop: bool
    """FedAvg: what a straggler has done is thrown away."""
    name: str = "stragglers"

    def evaluates(self) -> tuple[int, ...]:
        """The one width."""
        return (0,)

    def assign(self, device: Device, round: int, random: Random) -> Work | None:
        """All of the work, or as many epochs as a straggler has time for."""
        draw = random()
        late, epochs = draw.random() < self.chance, int(draw.integers(1, EPOCHS))
        if late and self.drop:
            return None
        return Work((0,), messages=((0,),), effort=epochs / EPOCHS if late else 1.0)

    def start(self, model: Vector) -> State:
        """The server remembers nothing but the model."""
        return {}

    def merge(self, mean: RunningMean, state: State) -> Merge:
        """The mean, weighted by samples."""
        return Merge(mean, state)


def holders(labels: NDArray[np.int64], devices: int, seed: int) -> NDArray[np.int64]:
    """Which device holds each sample: two neighbouring classes each, sizes by a power law.

    Every device gets five samples of each of its classes; what is left of a class is shared out by
    log-normal weights with sigma 2.
    """
    random = np.random.default_rng(seed)
    classes = int(labels.max()) + 1
    owner = np.full(len(labels), -1, np.int64)
    first = np.arange(devices) % classes
    for label in range(classes):
        members = random.permutation(np.flatnonzero(labels == label))
        mine = np.flatnonzero((first == label) | ((first + 1) % classes == label))
        weights = random.lognormal(0.0, 2.0, len(mine))
        spare = len(members) - len(mine) * (LEAST // CLASSES_PER_DEVICE)
        counts = LEAST // CLASSES_PER_DEVICE + (spare * weights / weights.sum()).astype(np.int64)
        owner[members[: counts.sum()]] = np.repeat(mine, counts)
    return owner


def dataset(mnist: Dataset, devices: int, seed: int) -> Dataset:
    """MNIST, with the holder of every sample; the few that rounding leaves over are left out."""
    owner = holders(mnist.train.labels, devices, seed)
    held = owner >= 0
    return Dataset.from_arrays(
        mnist.train.images[held],
        mnist.train.labels[held],
        mnist.test.images,
        mnist.test.labels,
        name="mnist, two classes per device",
        holders=owner[held],
    )


def accuracy(data: Dataset, method: Stragglers, mu: float, seed: int, **changes: object) -> float:
    """The final accuracy: the mean over the last ten rounds."""
    experiment = slimfl.Experiment(
        method=method, seed=seed, rounds=100,
        data=slimfl.Data(dataset=data, partition="natural"),
        federation=slimfl.Federation(devices=1000, participation=0.01, average="samples"),
        model=slimfl.Model(
            name="mlp", options={"hidden": ()}, widths=(1.0,), initialisation="torch"
        ),
        training=slimfl.Training(
            optimiser="sgd", momentum=0.0, learning_rate=0.03, weight_decay=0.001, batch_size=10,
            epochs=EPOCHS, proximal_mu=mu,
        ),
        radio=slimfl.Radio(noise_dbm=-150.0),
    )  # fmt: skip
    run = experiment.change(**changes).run()
    return fmean(line.accuracy["1.0x"] for line in run.lines[-10:])


def main() -> None:
    """One row per method and share of stragglers, beside what was published."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="folder with MNIST's four files")
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    mnist = load("mnist", asked.data_dir)
    print("| stragglers | method | published | here |\n|---|---|---|---|")
    for chance, published in PUBLISHED.items():
        for name, printed in published.items():
            method = Stragglers(chance, drop=name == "FedAvg")
            mu = 2.0 if name.endswith("2") else 0.0
            found = [
                accuracy(dataset(mnist, 1000, seed), method, mu, seed)
                for seed in range(asked.seeds)
            ]
            spread = f" ± {stdev(found):.2f}" if len(found) > 1 else ""
            print(f"| {chance:.0%} | {name} | {printed} | {fmean(found):.2f}{spread} |", flush=True)


if __name__ == "__main__":
    try:
        main()
    except slimfl.errors.RequestError as error:  # there are no data
        print(error, file=sys.stderr)
        sys.exit(2)
