"""Local training in torch: one device, one schedule."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from slimfl.data import Samples
from slimfl.experiment import TrainingSection
from slimfl.nn import FlatView, Vector, at_width
from slimfl.rng import generator
from slimfl.training.optimiser import export_state, import_state, optimiser
from slimfl.training.optimiser_state import OptimiserState
from slimfl.training.schedule import LocalSchedule
from slimfl.training.steps import check_losses, step


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
    """True if a forward pass draws random numbers; torch has one generator per process."""
    return any(isinstance(m, nn.modules.dropout._DropoutNd) for m in network.modules())


class LocalTrainer:
    """One resident network that trains for one device after the other."""

    def __init__(
        self, network: nn.Module, widths: tuple[float, ...], section: TrainingSection
    ) -> None:
        self.network, self.widths = network, widths
        self.random = is_random(network)
        self.flat = FlatView(network)
        self.optimiser = optimiser(section, self.flat.values)
        self.proximal_mu = section.proximal_mu

    def train(
        self, start: Vector, schedule: LocalSchedule, images: Images, state: OptimiserState | None
    ) -> tuple[Vector, OptimiserState, NDArray[np.float64]]:
        """Follow a schedule from the parameters `start`.

        Returns the new parameters, the optimiser's state and the mean loss over the
        images of every width (NaN for a width that took no part).
        """
        if not self.random:
            return self._train(start, schedule, images, state)
        with torch.random.fork_rng():
            seed, round, device = schedule.key
            torch.manual_seed(int(generator(seed, "layers", round, device).integers(2**63 - 1)))
            return self._train(start, schedule, images, state)

    def _train(
        self, start: Vector, schedule: LocalSchedule, images: Images, state: OptimiserState | None
    ) -> tuple[Vector, OptimiserState, NDArray[np.float64]]:
        values = self.flat.values
        values.data.copy_(torch.from_numpy(start))
        import_state(self.optimiser, values, state)
        origin = values.detach().clone() if self.proximal_mu else None

        def update(loss: Tensor) -> None:
            self.flat.gradients.zero_()
            loss.backward()  # type: ignore[no-untyped-call]
            if origin is not None:  # FedProx: the gradient of mu/2 |w - w_t|^2
                self.flat.gradients.add_(values.detach() - origin, alpha=self.proximal_mu)
            self.flat.step(self.optimiser)

        train_step = step(schedule.step, schedule.options)
        samples = torch.from_numpy(schedule.samples).to(values.device)
        totals = torch.zeros(len(self.widths), dtype=torch.float64, device=values.device)
        plan = [np.flatnonzero(row).tolist() for row in schedule.visits]

        for number, widths in enumerate(plan):
            begin, end = schedule.batch_offsets[number : number + 2].tolist()
            batch, labels = images.batch(samples[begin:end])
            for group in self.optimiser.param_groups:
                group["lr"] = float(schedule.learning_rates[number])

            def forward(i: int, batch: Tensor = batch) -> Tensor:
                with at_width(self.widths[i]):
                    logits: Tensor = self.network(batch)
                return logits

            losses = train_step(forward, labels, widths, schedule.weights, update)
            check_losses(schedule.step, losses, widths)
            totals[widths] += (end - begin) * torch.stack([loss.detach() for loss in losses])

        seen = schedule.images_seen
        means = totals.cpu().numpy() / np.where(seen > 0, seen, np.nan)
        result = values.detach().to("cpu", copy=True).numpy()
        return result, export_state(self.optimiser, values), means
