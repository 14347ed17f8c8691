"""SlimFL, algorithm 2 of the paper with its errata, in ordinary loops and plain PyTorch.

Read this file to understand SlimFL; use the `slimfl` package to run it. Only the data, the initial
weights and the random numbers come from the package, so that a test can compare the two.

    python examples/slimfl_plain.py
"""

import math
import sys

import torch
import torch.nn.functional as F

from slimfl.data import load, partition
from slimfl.errors import RequestError
from slimfl.experiment import DataSection
from slimfl.nn import build
from slimfl.rng import generator

SEED, ROUNDS, DEVICES, BATCH_SIZE, LEARNING_RATE = 0, 3, 10, 16, 1e-3

# the paper's radio link over the "poor" channel
NOISE_W = 10 ** ((-40 - 30) / 10)
POWER_W = 10 ** ((23 - 30) / 10)
DISTANCE_M, PATH_LOSS_EXPONENT, SPECTRAL_EFFICIENCY, LAMBDA = 100, 2.5, 1.5, 0.8


def network(weights, images, width):
    """UL-MobileNet, table I, at a width: slices of the shared weights."""
    stem, depthwise1, pointwise1, depthwise2, pointwise2, linear, bias = weights
    a, b, c = (math.ceil(channels * width) for channels in (32, 32, 64))
    x = F.relu6(F.conv2d(images, stem[:a], padding=1))
    x = F.relu6(F.conv2d(x, depthwise1[:a], padding=1, groups=a))
    x = F.relu6(F.conv2d(x, pointwise1[:b, :a]))
    x = F.relu6(F.conv2d(x, depthwise2[:b], padding=1, groups=b))
    x = F.relu6(F.conv2d(x, pointwise2[:c, :b]))
    return F.linear(x.mean((2, 3)), linear[:, :c], bias)


def left_half_masks(weights):
    """Xi of the paper: 1 where a weight belongs to the 0.5x network."""
    masks = [torch.zeros_like(w) for w in weights]
    for mask, channels_in in zip(masks, (None, None, 16, None, 16), strict=False):
        mask[: len(mask) // 2, slice(channels_in)] = 1
    masks[5][:, :32] = 1
    masks[6][:] = 1
    return masks


def superposition_training(weights, adam, images, labels):
    """Equation (1): both losses first, then one backward pass and one step."""
    full = network(weights, images, 1.0)
    half = network(weights, images, 0.5)
    teacher = F.softmax(full.detach(), dim=1)
    loss = 0.5 * F.cross_entropy(full, labels) + 0.5 * F.cross_entropy(half, teacher)
    adam.zero_grad()
    loss.backward()
    adam.step()


def decoded_segments(gain):
    """Successive decoding, section IV: the left half first, then the right half."""
    u = 2**SPECTRAL_EFFICIENCY - 1
    c = NOISE_W * DISTANCE_M**PATH_LOSS_EXPONENT
    power1, power2 = LAMBDA * POWER_W, (1 - LAMBDA) * POWER_W
    left = c / (power1 / u - power2)
    right = max(left, c / (power2 / u))
    return 2 if gain >= right else 1 if gain >= left else 0


def aggregate(last, arrived, masks):
    """Equation (6); a segment that nobody delivered keeps its last value (erratum E3)."""
    left = [weights for weights, segments in arrived if segments >= 1]
    right = [weights for weights, segments in arrived if segments == 2]
    merged = []
    for layer, mask in enumerate(masks):
        mean_left = sum(w[layer] for w in left) / len(left) if left else last[layer]
        mean_right = sum(w[layer] for w in right) / len(right) if right else last[layer]
        merged.append(mean_left * mask + mean_right * (1 - mask))
    return merged


def accuracy(weights, images, labels, width):
    """Share of correct answers."""
    with torch.no_grad():
        parts = zip(images.split(500), labels.split(500), strict=True)
        right = sum((network(weights, x, width).argmax(1) == y).sum() for x, y in parts)
    return right.item() / len(labels)


def main(dataset=None, rounds=ROUNDS, steps=20):
    """Algorithm 2. Returns the global weights and both accuracies after every round."""
    dataset = dataset or load("fashion-mnist")
    mean, deviation = dataset.normalisation("standard")

    def prepare(samples):
        images = torch.from_numpy(samples.images).permute(0, 3, 1, 2).float()
        return (images / 255 - mean[0]) / deviation[0], torch.from_numpy(samples.labels)

    images, labels = prepare(dataset.train)
    test_images, test_labels = prepare(dataset.test)
    held = partition(dataset.train.labels, DEVICES, DataSection(), SEED)
    global_weights = [w.detach() for w in build("ul-mobilenet", {}, seed=SEED).parameters()]
    masks = left_half_masks(global_weights)
    devices = []
    for _ in range(DEVICES):  # each device has its own weights and its own Adam moments
        local = [w.clone().requires_grad_() for w in global_weights]
        devices.append((local, torch.optim.Adam(local, lr=LEARNING_RATE)))

    history = []
    for t in range(1, rounds + 1):
        gains = -torch.log1p(-torch.from_numpy(generator(SEED, "fading", t).random(DEVICES)))
        arrived = []
        for k, (local, adam) in enumerate(devices):
            with torch.no_grad():  # downlink
                for weight, global_weight in zip(local, global_weights, strict=True):
                    weight.copy_(global_weight)
            shuffle, done = generator(SEED, "batches", t, k), 0
            while done < steps:
                order = torch.from_numpy(shuffle.permutation(held.of(k)))
                for batch in order.split(BATCH_SIZE)[: steps - done]:
                    superposition_training(local, adam, images[batch], labels[batch])
                    done += 1
            uploaded = [w.detach().clone() for w in local]  # uplink
            arrived.append((uploaded, decoded_segments(gains[k])))
        global_weights = aggregate(global_weights, arrived, masks)
        scores = [accuracy(global_weights, test_images, test_labels, w) for w in (0.5, 1.0)]
        print(f"round {t}: 0.5x {scores[0]:.1%}, 1.0x {scores[1]:.1%}")
        history.append(scores)
    return global_weights, history


if __name__ == "__main__":
    try:
        main()
    except RequestError as error:  # there are no data
        print(error, file=sys.stderr)
        sys.exit(2)
