"""The partition: how the training samples are distributed over the devices.

`dirichlet` draws, for every class, the devices' shares of it from Dir(alpha, ..., alpha); devices
differ in their class mix and in their size. `dirichlet-equal` follows Hsu et al. (2019,
arXiv:1909.06335), which the paper cites: every device draws its own class mix and all get equally
many samples, of that mix as far as the classes last (`equal_shares`); alpha counts for each class,
so Hsu's Dir(alpha p) is alpha over the number of classes. `iid` deals at random, `shards` deals
label-sorted shards (McMahan et al. 2017). `natural` leaves every sample with the device that the
data name as its holder.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError
from slimfl.experiment import DataSection
from slimfl.rng import generator

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Partition:
    """Device k holds the samples `indices[offsets[k]:offsets[k + 1]]`."""

    indices: Indices
    offsets: Indices

    @property
    def devices(self) -> int:
        """How many devices there are."""
        return len(self.offsets) - 1

    @cached_property
    def sizes(self) -> Indices:
        """How many samples every device holds."""
        return np.diff(self.offsets)

    def of(self, device: int) -> Indices:
        """The sample indices of one device."""
        return self.indices[self.offsets[device] : self.offsets[device + 1]]

    def class_counts(self, labels: Indices, classes: int) -> Indices:
        """A table [device, class] of sample counts: the paper's figure 3."""
        owner = np.repeat(np.arange(self.devices), self.sizes)
        flat = np.bincount(owner * classes + labels[self.indices], minlength=self.devices * classes)
        return flat.reshape(self.devices, classes)


def partition(
    labels: Indices,
    devices: int,
    section: DataSection,
    seed: int,
    shares: Floats | None = None,
    holders: Indices | None = None,
) -> Partition:
    """Distribute the samples over the devices, as the `data` section says.

    Args:
        labels: [sample].
        devices: How many there are.
        section: Which partition, and its parameters.
        seed: The experiment's.
        shares: [device] how much each is to hold beside the others; None: all alike. Under
            `dirichlet` they are the means of the devices' shares of a class.
        holders: [sample] the device that the data name, for `natural`.
    """
    if shares is not None and section.partition not in ("iid", "dirichlet", "own"):
        raise RequestError(
            f'data_share needs data.partition = "iid" or "dirichlet": {section.partition!r} '
            "settles itself how many samples a device holds"
        )
    if section.partition == "own":
        return Partition(np.empty(0, np.int64), np.zeros(devices + 1, np.int64))
    if section.partition == "natural":
        return _natural(holders, devices)
    least = section.min_samples
    if devices * least > len(labels):
        raise RequestError(
            f"{devices} devices with at least {least} samples each need {devices * least} samples "
            f"and there are {len(labels)}; lower federation.devices or data.min_samples"
        )
    random = generator(seed, "partition")
    match section.partition:
        case "iid":
            owner = random.permutation(_in_turn(len(labels), devices, shares))
        case "shards":
            owner = _shards(labels, devices, section.shards_per_device, random)
        case "dirichlet":
            owner = _dirichlet(labels, devices, section.alpha, random, shares)
        case "dirichlet-equal":
            owner = _dirichlet_equal(labels, devices, section.alpha, random)
    _raise_to_minimum(owner, devices, least, random)
    return _by_owner(owner, devices)


def _by_owner(owner: Indices, devices: int) -> Partition:
    """The partition in which every sample is its owner's; one with the owner -1 is nobody's."""
    order = np.argsort(owner, kind="stable")
    kept = order[np.searchsorted(owner[order], 0) :]
    counts = np.bincount(owner[kept], minlength=devices)
    return Partition(kept, np.concatenate([[0], np.cumsum(counts)]))


def _natural(holders: Indices | None, devices: int) -> Partition:
    """The first devices of those that the data name, each with its own samples."""
    if holders is None:
        raise RequestError(
            'data.partition = "natural" needs data that say which device holds each sample: give '
            "holders=... to Dataset.from_arrays or from_torch"
        )
    there = int(holders.max()) + 1
    if devices > there:
        raise RequestError(
            f"the data belong to {there} devices; set federation.devices to {there} or fewer"
        )
    return _by_owner(np.where(holders < devices, holders, -1), devices)


def all_of_one(samples: int, device: int, devices: int) -> Partition:
    """The partition as a device sees it that brought its own data: it holds all, others nothing."""
    offsets = np.where(np.arange(devices + 1) > device, samples, 0)
    return Partition(np.arange(samples), offsets.astype(np.int64))


def _in_turn(samples: int, devices: int, shares: Floats | None) -> Indices:
    """An owner for every sample, in proportion to the shares."""
    if shares is None:
        return np.arange(samples) % devices
    ends = np.rint(np.cumsum(shares / shares.sum()) * samples).astype(np.int64)
    return np.searchsorted(ends, np.arange(samples), side="right")


def _dirichlet(
    labels: Indices,
    devices: int,
    alpha: float,
    random: np.random.Generator,
    means: Floats | None,
) -> Indices:
    concentration = np.full(devices, alpha)
    if means is not None:
        concentration = alpha * means / means.mean()
    owner = np.empty(len(labels), np.int64)
    for label in np.unique(labels):
        members = random.permutation(np.flatnonzero(labels == label))
        shares = random.dirichlet(concentration)
        cuts = np.round(np.cumsum(shares)[:-1] * len(members)).astype(np.int64)
        owner[members] = np.searchsorted(cuts, np.arange(len(members)), side="right")
    return owner


def _dirichlet_equal(
    labels: Indices, devices: int, alpha: float, random: np.random.Generator
) -> Indices:
    classes, counts = np.unique(labels, return_counts=True)
    mixes = random.dirichlet(alpha * len(classes) * counts / counts.sum(), size=devices)
    shares = equal_shares(mixes, counts, len(labels) // devices, random)
    owner = np.full(len(labels), -1, np.int64)  # a remainder below one sample per device stays out
    for label, taken in zip(classes, shares.T, strict=True):
        pool = random.permutation(np.flatnonzero(labels == label))
        owner[pool[: taken.sum()]] = np.repeat(np.arange(devices), taken)
    return owner


def equal_shares(mixes: Floats, stock: Indices, each: int, random: np.random.Generator) -> Indices:
    """A table [device, class] of counts whose rows sum to `each` and whose columns fit the stock.

    All devices ask for their mix at once. A class with too few samples is handed out in a random
    order, drawn per class; devices that get less ask again, in the same proportions, for the
    remaining classes. So no device is last because of its number, and the mixes change no more than
    the stock demands.

    Args:
        mixes: [device, class] the proportions that every device wants.
        stock: [class] how many there are, enough for all devices together.
        each: Samples per device.
        random: Draws the order.
    """
    shares = np.zeros(mixes.shape, np.int64)
    left = stock.astype(np.int64)
    while (missing := each - shares.sum(axis=1)).any():
        # terminates: either all devices get what they ask for, or a class runs out
        asked = _apportion(missing, _wanted(mixes, left))
        for label in range(len(stock)):
            order = random.permutation(len(mixes))
            queue = asked[order, label]
            before = np.cumsum(queue) - queue
            granted = np.clip(left[label] - before, 0, queue)
            shares[order, label] += granted
            left[label] -= granted.sum()
    return shares


def _wanted(mixes: Floats, left: Indices) -> Floats:
    """The mixes without the classes that have run out, as proportions."""
    wanted = np.where(left > 0, mixes, 0.0)
    total = wanted.sum(axis=1, keepdims=True)
    # a device that wants none of the remaining classes gets them evenly
    return np.where(total > 0, wanted / np.where(total > 0, total, 1.0), left / left.sum())


def _apportion(seats: Indices, proportions: Floats) -> Indices:
    """Integers in the given proportions; row k sums to `seats[k]` (largest remainders)."""
    exact = seats[:, None] * proportions
    whole = np.floor(exact).astype(np.int64)
    rank = np.argsort(np.argsort(whole - exact, axis=1, kind="stable"), axis=1)
    rounded_up = rank < (seats - whole.sum(axis=1))[:, None]
    return np.asarray(whole + rounded_up)


def _shards(labels: Indices, devices: int, each: int, random: np.random.Generator) -> Indices:
    shards = devices * each
    if shards > len(labels):
        raise RequestError(
            f"{shards} shards need at least that many samples and there are {len(labels)}; lower "
            "data.shards_per_device"
        )
    shard_owner = random.permutation(np.repeat(np.arange(devices), each))
    by_label = np.lexsort((random.random(len(labels)), labels))
    owner = np.empty(len(labels), np.int64)
    owner[by_label] = shard_owner[np.arange(len(labels)) * shards // len(labels)]
    return owner


def _raise_to_minimum(
    owner: Indices, devices: int, least: int, random: np.random.Generator
) -> None:
    """Top devices up to the minimum from the surplus of all others, drawn at random."""
    held = np.flatnonzero(owner >= 0)
    sizes = np.bincount(owner[held], minlength=devices)
    lacking = np.maximum(least - sizes, 0)
    if not lacking.any():
        return
    shuffled = held[np.lexsort((random.random(len(held)), owner[held]))]
    starts = np.cumsum(sizes) - sizes
    rank = np.arange(len(shuffled)) - starts[owner[shuffled]]
    surplus = random.permutation(shuffled[rank >= least])
    owner[surplus[: lacking.sum()]] = np.repeat(np.arange(devices), lacking)
