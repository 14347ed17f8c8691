"""The network and training algorithms in plain torch, as a reference for the native engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional


@dataclass(frozen=True)
class Sizes:
    """Sizes of a slimmable network."""

    in_channels: int
    height: int
    width: int
    channels: tuple[int, int, int]
    classes: int
    active: tuple[tuple[int, int, int], ...]

    def tensor_shapes(self) -> list[tuple[int, ...]]:
        c1, c2, c3 = self.channels
        return [
            (c1, self.in_channels, 3, 3),
            (c1, 1, 3, 3),
            (c2, c1, 1, 1),
            (c2, 1, 3, 3),
            (c3, c2, 1, 1),
            (self.classes, c3),
            (self.classes,),
        ]

    def parameter_count(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.tensor_shapes())


def random_theta(sizes: Sizes, rng: np.random.Generator, spread: float = 1.5) -> np.ndarray:
    """Weights large enough that both ends of the ReLU6 are met."""
    parts = []
    for shape in sizes.tensor_shapes():
        fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else 1
        scale = spread * np.sqrt(2.0 / fan_in) if len(shape) > 1 else 0.1
        parts.append(rng.normal(0.0, scale, int(np.prod(shape))))
    return np.concatenate(parts).astype(np.float32)


def logits(
    sizes: Sizes,
    theta: torch.Tensor,
    images: torch.Tensor,
    width: int,
    relu6: Callable[[torch.Tensor], torch.Tensor] = functional.relu6,
) -> torch.Tensor:
    """Forward of normalised images [N, C, H, W] at one width, by slicing."""
    tensors = []
    start = 0
    for shape in sizes.tensor_shapes():
        size = int(np.prod(shape))
        tensors.append(theta[start : start + size].view(shape))
        start += size
    conv, depth1, point1, depth2, point2, linear, bias = tensors
    n1, n2, n3 = sizes.active[width]
    x = relu6(functional.conv2d(images, conv[:n1], padding=1))
    x = relu6(functional.conv2d(x, depth1[:n1], padding=1, groups=n1))
    x = relu6(functional.conv2d(x, point1[:n2, :n1]))
    x = relu6(functional.conv2d(x, depth2[:n2], padding=1, groups=n2))
    x = relu6(functional.conv2d(x, point2[:n3, :n2]))
    return functional.linear(x.mean(dim=(2, 3)), linear[:, :n3], bias)


def distance_to_a_kink(
    sizes: Sizes, theta: torch.Tensor, images: torch.Tensor, widths: list[int]
) -> float:
    """How close any activation comes to an end of the ReLU6, where its gradient jumps.

    An exact zero is no danger: it is a sum of zeros in every precision.
    """
    distances = [torch.inf]

    def relu6(x: torch.Tensor) -> torch.Tensor:
        away = torch.minimum(x.abs(), (x - 6).abs())[x != 0]
        if away.numel():
            distances.append(away.min().item())
        return functional.relu6(x)

    with torch.no_grad():
        for width in widths:
            logits(sizes, theta, images, width, relu6)
    return min(distances)


def normalise(images: np.ndarray, mean: np.ndarray, std: np.ndarray) -> torch.Tensor:
    x = images if images.ndim == 4 else images[..., None]
    x = (x.astype(np.float32) / np.float32(255.0) - mean) / std
    return torch.from_numpy(np.ascontiguousarray(x.transpose(0, 3, 1, 2)))


def losses(
    sizes: Sizes,
    theta: torch.Tensor,
    x: torch.Tensor,
    y: torch.Tensor,
    algorithm: str,
    visited: list[int],
) -> dict[int, torch.Tensor]:
    """The unweighted losses of the visited widths in accumulate mode."""
    full = visited[-1]
    full_logits = logits(sizes, theta, x, full)
    result = {full: functional.cross_entropy(full_logits, y)}
    for w in visited[:-1]:
        target = y if algorithm == "slimtrain" else functional.softmax(full_logits.detach(), dim=1)
        result[w] = functional.cross_entropy(logits(sizes, theta, x, w), target)
    return result


def train(
    sizes: Sizes,
    theta: torch.Tensor,
    optimiser: torch.optim.Optimizer,
    x: torch.Tensor,
    y: torch.Tensor,
    batches: list[np.ndarray],
    rates: np.ndarray,
    algorithm: str,
    mode: str,
    weights: np.ndarray,
    visits: np.ndarray,
) -> None:
    """Trains theta, a leaf tensor the optimiser holds, in place."""
    for batch, rate, row in zip(batches, rates, visits, strict=True):
        for group in optimiser.param_groups:
            group["lr"] = float(rate)
        bx, by = x[batch], y[batch]
        visited = [w for w in range(len(sizes.active)) if row[w]]
        if mode == "accumulate":
            parts = losses(sizes, theta, bx, by, algorithm, visited)
            loss = sum(weights[w] * part for w, part in parts.items())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            continue
        soft = None
        for w in reversed(visited):
            out = logits(sizes, theta, bx, w)
            if algorithm == "ustrain" and soft is not None:
                loss = weights[w] * functional.cross_entropy(out, soft)
            else:
                loss = weights[w] * functional.cross_entropy(out, by)
            if soft is None:
                soft = functional.softmax(out.detach(), dim=1)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
