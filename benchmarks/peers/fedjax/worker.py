"""Federated averaging with FedJAX; see README.md."""

import os
import warnings
from collections.abc import Iterator, Mapping

from peer_protocol import Peer, Work, serve

os.environ["JAX_PLATFORMS"] = "cpu"

import fedjax
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from fedjax.algorithms import fed_avg

MEAN, DEVIATION = 0.286, 0.353
LEARNING_RATE = 1e-3
Examples = Mapping[str, np.ndarray]


def depthwise(x: jnp.ndarray, name: str) -> jnp.ndarray:
    """A 3x3 convolution of each channel by itself, as nine shifted products.

    XLA's own grouped convolution takes more than twice as long on a CPU.
    """
    channels = x.shape[-1]
    weight = hk.get_parameter(
        name, (3, 3, channels), init=hk.initializers.RandomUniform(-1 / 3, 1 / 3)
    )
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    height, width = x.shape[1:3]
    return sum(
        padded[:, i : i + height, j : j + width] * weight[i, j] for i in range(3) for j in range(3)
    )


def forward(batch: Examples) -> jnp.ndarray:
    """UL-MobileNet at full width on bytes."""
    x = (batch["x"].astype(jnp.float32)[..., None] / 255 - MEAN) / DEVIATION
    x = jax.nn.relu6(hk.Conv2D(32, 3, with_bias=False)(x))
    x = jax.nn.relu6(depthwise(x, "depthwise_1"))
    x = jax.nn.relu6(hk.Conv2D(32, 1, with_bias=False)(x))
    x = jax.nn.relu6(depthwise(x, "depthwise_2"))
    x = jax.nn.relu6(hk.Conv2D(64, 1, with_bias=False)(x))
    return hk.Linear(10)(x.mean((1, 2)))


class Epoch:
    """Batches of one epoch in a new order each time; the last may be smaller."""

    def __init__(self, examples: Examples, batch_size: int) -> None:
        self.examples, self.batch_size = examples, batch_size

    def __iter__(self) -> Iterator[Examples]:
        count = len(self.examples["y"])
        order = np.random.default_rng().permutation(count)
        for start in range(0, count, self.batch_size):
            batch = order[start : start + self.batch_size]
            yield {name: values[batch] for name, values in self.examples.items()}


class ExactDataset(fedjax.ClientDataset):
    """FedJAX fills the last batch with images drawn again: 64 where the device has 20."""

    def shuffle_repeat_batch(
        self, hparams: fedjax.ShuffleRepeatBatchHParams | None = None, **kwargs: int
    ) -> Epoch:
        """One epoch, every image once."""
        assert hparams is not None
        return Epoch(self.raw_examples, hparams.batch_size)


def prepare(work: Work) -> Peer:
    """FedJAX's own federated averaging."""
    fedjax.set_for_each_client_backend("jit")
    sample = {"x": np.zeros((1, 28, 28), np.uint8), "y": np.zeros(1, np.int32)}
    model = fedjax.create_model_from_haiku(
        hk.transform(forward),
        sample,
        lambda batch, logits: fedjax.metrics.unreduced_cross_entropy_loss(batch["y"], logits),
    )
    algorithm = fed_avg.federated_averaging(
        fedjax.model_grad(model),
        fedjax.optimizers.adam(LEARNING_RATE),
        fedjax.optimizers.sgd(1.0),
        fedjax.ShuffleRepeatBatchHParams(batch_size=work.batch_size),
    )
    random = np.random.default_rng(0)
    shape = (work.devices, work.images_per_device)
    pixels = random.integers(0, 256, (*shape, 28, 28), dtype=np.uint8)
    labels = random.integers(0, 10, shape, dtype=np.int32)
    datasets = [ExactDataset({"x": x, "y": y}) for x, y in zip(pixels, labels, strict=True)]
    state = algorithm.init(model.init(jax.random.PRNGKey(0)))
    key = jax.random.PRNGKey(1)

    def round_() -> None:
        nonlocal state, key
        key, *keys = jax.random.split(key, work.devices + 1)
        clients = [(number, *each) for number, each in enumerate(zip(datasets, keys, strict=True))]
        state, _ = algorithm.apply(state, clients)
        jax.block_until_ready(state.params)

    return Peer(round_, lambda: float(fedjax.tree_util.tree_l2_norm(state.params)))


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # FedJAX calls jax.tree_map
    serve(prepare)
