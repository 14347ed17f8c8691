"""Local training in torch: one device, one lesson."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from slimfl.config import TrainingSection
from slimfl.data import Samples
from slimfl.nn import FlatView, Vector, at_width
from slimfl.rng import generator
from slimfl.training.algorithms import ALGORITHMS
from slimfl.training.lesson import Lesson
from slimfl.training.optimiser import OptimiserState, export_state, import_state, optimiser


class Images:
    """Samples on a compute device, normalised only when a batch is taken."""

    def __init__(
        self, samples: Samples, mean: Vector, deviation: Vector, device: str = "cpu"
    ) -> None:
        self.pixels = torch.from_numpy(samples.images).to(device)
        self.labels = torch.from_numpy(samples.labels).to(device)
        # (x / 255 - mean) / deviation as one multiplication and one subtraction
        self.scale = torch.from_numpy(1 / (255 * deviation)).to(device)
        self.shift = torch.from_numpy(mean / deviation).to(device)

    def batch(self, index: Tensor | slice) -> tuple[Tensor, Tensor]:
        """Normalised images [sample, channel, row, column] in channels-last memory, and labels."""
        taken = self.pixels[index].to(torch.float32).mul_(self.scale).sub_(self.shift)
        return taken.permute(0, 3, 1, 2), self.labels[index]


def is_random(network: nn.Module) -> bool:
    """Whether a forward pass draws random numbers; torch has one source of them a process."""
    return any(isinstance(m, nn.modules.dropout._DropoutNd) for m in network.modules())


class LocalTrainer:
    """One resident network that plays one device after the other."""

    def __init__(
        self, network: nn.Module, widths: tuple[float, ...], section: TrainingSection
    ) -> None:
        self.network, self.widths = network, widths
        self.random = is_random(network)
        self.flat = FlatView(network)
        self.optimiser = optimiser(section, self.flat.values)

    def train(
        self, start: Vector, lesson: Lesson, images: Images, state: OptimiserState | None
    ) -> tuple[Vector, OptimiserState, NDArray[np.float64]]:
        """Follow a lesson from the parameters `start`.

        Returns the new parameters, the optimiser's state and the mean loss over the
        images of every width (NaN for a width that took no part).
        """
        if not self.random:
            return self._train(start, lesson, images, state)
        with torch.random.fork_rng():
            seed, round, device = lesson.key
            torch.manual_seed(int(generator(seed, "layers", round, device).integers(2**63 - 1)))
            return self._train(start, lesson, images, state)

    def _train(
        self, start: Vector, lesson: Lesson, images: Images, state: OptimiserState | None
    ) -> tuple[Vector, OptimiserState, NDArray[np.float64]]:
        values = self.flat.values
        values.data.copy_(torch.from_numpy(start))
        import_state(self.optimiser, values, state)
        algorithm = ALGORITHMS[lesson.algorithm, lesson.order]
        samples = torch.from_numpy(lesson.samples).to(values.device)
        totals = torch.zeros(len(self.widths), dtype=torch.float64, device=values.device)
        plan = [np.flatnonzero(row).tolist() for row in lesson.visits]

        for step, widths in enumerate(plan):
            begin, end = lesson.batch_offsets[step : step + 2].tolist()
            batch, labels = images.batch(samples[begin:end])
            for group in self.optimiser.param_groups:
                group["lr"] = float(lesson.learning_rates[step])

            def forward(i: int, batch: Tensor = batch) -> Tensor:
                with at_width(self.widths[i]):
                    logits: Tensor = self.network(batch)
                return logits

            losses = algorithm(forward, labels, widths, lesson.weights, self._update)
            totals[widths] += (end - begin) * torch.stack([loss.detach() for loss in losses])

        seen = lesson.images_seen
        means = totals.cpu().numpy() / np.where(seen > 0, seen, np.nan)
        result = values.detach().to("cpu", copy=True).numpy()
        return result, export_state(self.optimiser, values), means

    def _update(self, loss: Tensor) -> None:
        self.flat.gradients.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
