"""The torch engine: any network of slimmable layers, on a CPU or a GPU."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from slimfl.engines.allocator import tune_allocator
from slimfl.engines.base import Score, Task, Update, Workload
from slimfl.engines.device_states import DeviceStates
from slimfl.nn import Vector, at_width
from slimfl.training import Images, LocalTrainer

#: Larger batches spill out of the cache and evaluate no faster.
EVALUATION_BATCH = 200


class TorchEngine:
    """One resident network; parameters are copied in, trained, and copied out."""

    name = "torch"

    def __init__(self, workload: Workload, network: nn.Module, device: str = "cpu") -> None:
        tune_allocator()
        experiment = workload.experiment
        if experiment.threads is not None:
            torch.set_num_threads(experiment.threads)
        self.threads = torch.get_num_threads()
        self.workload = workload
        self.widths = experiment.model.widths
        self.network = network.to(device)
        self.trainer = LocalTrainer(self.network, self.widths, experiment.training)
        mean, deviation = workload.dataset.normalisation(experiment.data.normalise)
        self.training_images = Images(workload.dataset.train, mean, deviation, device)
        self.test_images = Images(workload.dataset.test, mean, deviation, device)
        self.states = DeviceStates(keep=experiment.training.optimiser_state == "kept")

    def train(self, round: int, start: Vector, tasks: Sequence[Task]) -> Iterator[Update]:
        """Train one device after the other, each on all cores."""
        self.network.train()
        for task in tasks:
            lesson = self.workload.lesson(round, task)
            parameters, state, losses = self.trainer.train(
                start, lesson, self.training_images, self.states.get(task.device)
            )
            self.states.put(task.device, state)
            held = int(self.workload.partition.sizes[task.device])
            yield Update(task.device, parameters, held, losses)

    @torch.no_grad()
    def evaluate(self, parameters: Vector, widths: Sequence[int]) -> list[Score]:
        """Score the widths in large batches."""
        self.network.eval()
        self.trainer.flat.values.data.copy_(torch.from_numpy(parameters))
        count = len(self.test_images.labels)
        correct = torch.zeros(len(widths), device=self.test_images.labels.device)
        loss = torch.zeros_like(correct, dtype=torch.float64)
        for start in range(0, count, EVALUATION_BATCH):
            images, labels = self.test_images.batch(slice(start, start + EVALUATION_BATCH))
            for row, index in enumerate(widths):
                with at_width(self.widths[index]):
                    logits = self.network(images)
                correct[row] += (logits.argmax(1) == labels).sum()
                loss[row] += nn.functional.cross_entropy(logits, labels, reduction="sum")
        return [
            Score(float(right) / count, float(total) / count)
            for right, total in zip(correct.cpu(), loss.cpu(), strict=True)
        ]

    def device_states(self) -> dict[str, NDArray[np.float32]]:
        """The optimiser states that devices keep."""
        return self.states.export()

    def restore_device_states(self, states: dict[str, NDArray[np.float32]]) -> None:
        """Take back what `device_states` gave."""
        self.states.restore(states)
