"""Local training in torch: one device, one schedule."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from slimfl.data import Samples
from slimfl.experiment import TrainingSection
from slimfl.nn import FlatView, Vector, at_width
from slimfl.rng import generator
from slimfl.training.optimisers import export_state, import_state, optimiser
from slimfl.training.schedule import LocalSchedule
from slimfl.training.steps import UpdateStep, check_losses, step
from slimfl.training.work import OptimiserState


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


def follow(
    schedule: LocalSchedule,
    samples: Tensor,
    images: Images,
    optim: torch.optim.Optimizer,
    logits: Callable[[Tensor, int], Tensor],
    update: UpdateStep,
) -> NDArray[np.float64]:
    """Take every step of a schedule.

    Args:
        schedule: The batches, widths and learning rates.
        samples: Sample indices [position], or [device, position] for devices side by side.
        images: What the indices refer to.
        optim: Whose learning rate the schedule sets.
        logits: The logits of a batch at the width of that index.
        update: One backward pass and one optimiser step.

    Returns:
        The mean loss over the images of every width; NaN for a width that took no part.
    """
    train_step = step(schedule.step, schedule.options)
    totals = torch.zeros(schedule.visits.shape[1], dtype=torch.float64, device=samples.device)
    for number, row in enumerate(schedule.visits):
        begin, end = schedule.batch_offsets[number : number + 2].tolist()
        batch, labels = images.batch(samples[..., begin:end].reshape(-1))
        for group in optim.param_groups:
            group["lr"] = float(schedule.learning_rates[number])
        widths = np.flatnonzero(row).tolist()
        losses = train_step(partial(logits, batch), labels, widths, schedule.weights, update)
        check_losses(schedule.step, losses, widths)
        totals[widths] += (end - begin) * torch.stack([loss.detach() for loss in losses])
    seen = schedule.images_seen
    return np.asarray(totals.cpu().numpy() / np.where(seen > 0, seen, np.nan))


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

        def logits(batch: Tensor, i: int) -> Tensor:
            with at_width(self.widths[i]):
                found: Tensor = self.network(batch)
            return found

        samples = torch.from_numpy(schedule.samples).to(values.device)
        means = follow(schedule, samples, images, self.optimiser, logits, update)
        result = values.detach().to("cpu", copy=True).numpy()
        return result, export_state(self.optimiser, values), means
