"""Local training of many devices at once: a leading device axis instead of a loop.

For small steps, most of the time goes into calling operations, not into arithmetic. So devices
whose schedules have the same shape train as one: their parameters are rows of a matrix,
`torch.func` maps the network over the rows, and one optimiser step moves all of them. The results
are those of training one after the other, up to the rounding of sums.
"""

from collections.abc import Hashable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, vmap

from slimfl.experiment import TrainingSection
from slimfl.nn import Vector, at_width
from slimfl.training.local import Images, follow
from slimfl.training.optimisers import export_state, import_state, optimiser
from slimfl.training.schedule import LocalSchedule
from slimfl.training.work import OptimiserState


def cohort_key(schedule: LocalSchedule, state: OptimiserState | None) -> Hashable:
    """Schedules with the same key can be trained as one cohort.

    The key has everything that the cohort takes from its first schedule.
    """
    return (
        schedule.step,
        schedule.options,
        schedule.weights,
        schedule.learning_rates.tobytes(),
        schedule.batch_offsets.tobytes(),
        schedule.visits.tobytes(),
        tuple(state) if state else (),
        float(state["step"]) if state and "step" in state else 0.0,
    )


class CohortTrainer:
    """One network, mapped over the devices of a cohort."""

    def __init__(
        self, network: nn.Module, widths: tuple[float, ...], section: TrainingSection
    ) -> None:
        self.network, self.widths, self.section = network, widths, section
        self.device = next(network.parameters()).device
        self.shapes = {name: p.shape for name, p in network.named_parameters()}

    def train(
        self,
        start: Vector,
        schedules: Sequence[LocalSchedule],
        images: Images,
        states: Sequence[OptimiserState | None],
    ) -> list[tuple[Vector, OptimiserState, NDArray[np.float64]]]:
        """Follow schedules with the same key from the parameters `start`.

        Returns per device what `LocalTrainer.train` does; losses are the mean of the cohort.
        """
        count, schedule = len(schedules), schedules[0]
        values = nn.Parameter(torch.from_numpy(start).to(self.device).repeat(count, 1))
        origin = values.detach().clone() if self.section.proximal_mu else values
        optim = optimiser(self.section, values)
        known = [state for state in states if state]
        if known:
            stacked = {
                name: value if name == "step" else np.stack([state[name] for state in known])
                for name, value in known[0].items()
            }
            import_state(optim, values, stacked)
        samples = torch.from_numpy(np.stack([one.samples for one in schedules])).to(self.device)
        self.network.train()

        def update(loss: Tensor) -> None:
            values.grad = None
            # undo the mean over devices: each device needs the gradient of its own mean
            (count * loss).backward()  # type: ignore[no-untyped-call]
            if self.section.proximal_mu:  # FedProx: the gradient of mu/2 |w - w_t|^2
                assert values.grad is not None
                values.grad.add_(values.detach() - origin, alpha=self.section.proximal_mu)
            optim.step()

        def logits(batch: Tensor, i: int) -> Tensor:
            by_device = batch.reshape(count, -1, *batch.shape[1:])
            with at_width(self.widths[i]):
                found = vmap(self._call, randomness="different")(self._rows(values), by_device)
            return found.flatten(0, 1)

        means = follow(schedule, samples, images, optim, logits, update)
        parameters, state = values.detach().cpu().numpy(), export_state(optim, values)
        return [
            (
                parameters[k].copy(),
                {n: value.copy() if n == "step" else value[k].copy() for n, value in state.items()},
                means,
            )
            for k in range(count)
        ]

    def _call(self, parameters: dict[str, Tensor], images: Tensor) -> Tensor:
        logits: Tensor = functional_call(self.network, parameters, (images,))
        return logits

    def _rows(self, values: Tensor) -> dict[str, Tensor]:
        """The flat rows as tensors [device, ...] under the network's names."""
        sizes = [shape.numel() for shape in self.shapes.values()]
        blocks = torch.split_with_sizes(values, sizes, dim=1)
        return {
            name: block.reshape(len(values), *shape)
            for (name, shape), block in zip(self.shapes.items(), blocks, strict=True)
        }
