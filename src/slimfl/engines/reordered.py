"""Training with the channels in another order, for an engine that trains leading widths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, wraps
from itertools import groupby
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import nn

from slimfl.engines.base import Task, Update
from slimfl.engines.device_states import DeviceStates
from slimfl.nn import ChannelOrder, Vector, flat_order
from slimfl.training import OptimiserState


class Orders:
    """The flat orders of one network, each computed once."""

    def __init__(self, network: nn.Module) -> None:
        self.of = lru_cache(maxsize=64)(lambda order: flat_order(network, order))


class _Reordering(Protocol):
    orders: Orders
    states: DeviceStates


Train = Callable[[Any, int, Vector, Sequence[Task]], Iterator[Update]]


def in_channel_order(train: Train) -> Train:
    """Extend an engine's `train` to tasks with a channel order.

    The states of devices are stored in the model's own order.
    """

    @wraps(train)
    def reordered(
        self: _Reordering, round: int, start: Vector, tasks: Sequence[Task]
    ) -> Iterator[Update]:
        for order, alike in groupby(tasks, key=lambda task: task.work.channels):
            if order is None:
                yield from train(self, round, start, list(alike))
                continue
            yield from _in_order(self, train, order, round, start, list(alike))

    return reordered


def _in_order(
    engine: _Reordering,
    train: Train,
    order: ChannelOrder,
    round: int,
    start: Vector,
    tasks: Sequence[Task],
) -> Iterator[Update]:
    places = engine.orders.of(order)
    for task in tasks:
        _reorder_state(engine.states, task.device, lambda values: values[places])
    for update in train(engine, round, start[places], tasks):
        _reorder_state(engine.states, update.device, lambda values: put_back(values, places))
        yield replace(update, parameters=put_back(update.parameters, places))


def _reorder_state(
    states: DeviceStates, device: int, reorder: Callable[[NDArray[Any]], NDArray[Any]]
) -> None:
    state = states.get(device)
    if state:
        moved: OptimiserState = {
            name: reorder(values) if values.ndim else values for name, values in state.items()
        }
        states.put(device, moved)


def put_back(values: NDArray[Any], places: NDArray[np.int64]) -> NDArray[Any]:
    """Undo `values[places]`."""
    result = np.empty_like(values)
    result[places] = values
    return result
