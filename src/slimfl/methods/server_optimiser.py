"""An optimiser step of the server along the mean change of a round, for any method.

FedAvgM: T. Hsu et al., 2019. FedAdam: S. Reddi et al., "Adaptive federated optimization", ICLR
2021, with the correction of the moments that Flower has (its exponent starts at 2)::

    change = merged model - model, where something arrived
    momentum: m = beta m + change;                                  model += rate m
    adam:     m = b1 m + (1 - b1) change; v = b2 v + (1 - b2) change^2
              model += rate sqrt(1 - b2^(t+1)) / (1 - b1^(t+1)) m / (sqrt(v) + tau)

Parameters of which nothing arrived, and their moments, do not change. `t` counts per parameter the
rounds in which something arrived. Statistics of batch normalisation have no gradient, so they are
taken as merged.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Device
from slimfl.experiment import ServerSection
from slimfl.methods.merging import Arrival, Merge, Positions, RunningMean, State
from slimfl.methods.method import Method, Random
from slimfl.nn import Vector
from slimfl.training import Work


@dataclass(frozen=True)
class ServerOptimiser:
    """Wraps a method and uses its merged model as a direction for the server's step."""

    inner: Method
    section: ServerSection
    measured: Positions | None = field(default=None, compare=False)
    """Where the model holds what devices measure."""

    @property
    def name(self) -> str:
        """That of the method."""
        return self.inner.name

    def evaluates(self) -> tuple[int, ...]:
        """As the method."""
        return self.inner.evaluates()

    def assign(self, device: Device, round: int, random: Random) -> Work | None:
        """As the method."""
        return self.inner.assign(device, round, random)

    def start(self, model: Vector) -> State:
        """The method's state, and the moments of every parameter."""
        own: State = {"server/m": np.zeros_like(model)}
        if self.section.optimiser == "adam":
            own |= {"server/v": np.zeros_like(model), "server/t": np.zeros(len(model), np.int32)}
        return self.inner.start(model) | own

    def merge(self, mean: RunningMean, state: State) -> Merge:
        """The method's own merge, and one step of the server's optimiser at its end."""
        own = {name: value.copy() for name, value in state.items() if name.startswith("server/")}
        others = {name: value for name, value in state.items() if name not in own}
        return _ServerStep(self, self.inner.merge(mean, others), mean, own)


class _ServerStep(Merge):
    """A step along the change that the method would make, where something arrived."""

    def __init__(
        self, optimiser: ServerOptimiser, inner: Merge, mean: RunningMean, own: State
    ) -> None:
        super().__init__(mean, own)
        self.optimiser, self.inner = optimiser, inner

    @property
    def uses_the_mean(self) -> bool:
        return self.inner.uses_the_mean

    def add(self, arrival: Arrival) -> None:
        self.inner.add(arrival)

    def result(self) -> tuple[Vector, State]:
        model = self.mean.last
        merged, others = self.inner.result()
        arrived = self.mean.weights() > 0
        if not self.inner.uses_the_mean:
            arrived = merged != model
        result = model.copy()
        result[arrived] = model[arrived] + self._step(arrived, (merged - model)[arrived])
        if self.optimiser.measured is not None:
            result[self.optimiser.measured] = merged[self.optimiser.measured]
        return result, others | self.state

    def _step(self, where: NDArray[np.bool_], change: Vector) -> Vector:
        section, m = self.optimiser.section, self.state["server/m"]
        rate = np.float32(section.learning_rate)
        if section.optimiser == "momentum":
            m[where] = section.momentum * m[where] + change
            moved: Vector = rate * m[where]
            return moved
        first, second = section.betas
        v, t = self.state["server/v"], self.state["server/t"]
        m[where] = first * m[where] + (1 - first) * change
        v[where] = second * v[where] + (1 - second) * change**2
        t[where] += 1
        steps = t[where].astype(np.float64) + 1
        unbiased = np.sqrt(1 - second**steps) / (1 - first**steps)
        step: Vector = (rate * unbiased * m[where] / (np.sqrt(v[where]) + section.tau)).astype(
            np.float32
        )
        return step
