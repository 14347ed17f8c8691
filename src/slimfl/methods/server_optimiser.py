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
from slimfl.methods.arrivals import Arrivals, Positions
from slimfl.methods.method import Assignment, Method, Random, State
from slimfl.nn import Vector


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

    def assign(self, device: Device, round: int, random: Random) -> Assignment | None:
        """As the method."""
        return self.inner.assign(device, round, random)

    def initial_state(self, model: Vector) -> State:
        """The method's state, and the moments of every parameter."""
        own: State = {"server/m": np.zeros_like(model)}
        if self.section.optimiser == "adam":
            own |= {"server/v": np.zeros_like(model), "server/t": np.zeros(len(model), np.int32)}
        return self.inner.initial_state(model) | own

    def aggregate(self, model: Vector, state: State, arrivals: Arrivals) -> tuple[Vector, State]:
        """One step of the server's optimiser where something arrived."""
        own = {name: value.copy() for name, value in state.items() if name.startswith("server/")}
        others = {name: value for name, value in state.items() if name not in own}
        merged, others = self.inner.aggregate(model, others, arrivals)
        heard = arrivals.heard if arrivals.heard is not None else merged != model
        result = model.copy()
        result[heard] = model[heard] + self._step(own, heard, (merged - model)[heard])
        if self.measured is not None:
            result[self.measured] = merged[self.measured]
        return result, others | own

    def _step(self, own: State, heard: NDArray[np.bool_], change: Vector) -> Vector:
        section, m = self.section, own["server/m"]
        rate = np.float32(section.learning_rate)
        if section.optimiser == "momentum":
            m[heard] = section.momentum * m[heard] + change
            moved: Vector = rate * m[heard]
            return moved
        first, second = section.betas
        v, t = own["server/v"], own["server/t"]
        m[heard] = first * m[heard] + (1 - first) * change
        v[heard] = second * v[heard] + (1 - second) * change**2
        t[heard] += 1
        steps = t[heard].astype(np.float64) + 1
        unbiased = np.sqrt(1 - second**steps) / (1 - first**steps)
        step: Vector = (rate * unbiased * m[heard] / (np.sqrt(v[heard]) + section.tau)).astype(
            np.float32
        )
        return step
