"""Randomness as a function of (seed, purpose, round, device), never of execution order.

So every engine, any number of workers and a resumed run see the same batches and the same fading,
and two methods with the same seed see the same channel.
"""

import zlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray


def generator(seed: int, purpose: str, round: int = 0, device: int = 0) -> np.random.Generator:
    """A fresh generator for one purpose in one round on one device.

    Args:
        seed: The run's.
        purpose: A word such as `batches`.
        round: From 1; 0 is before the first round.
        device: Its number.

    >>> a = generator(7, "batches", round=3, device=1).random()
    >>> b = generator(7, "batches", round=3, device=1).random()
    >>> c = generator(7, "batches", round=3, device=2).random()
    >>> a == b, a == c
    (True, False)
    """
    return np.random.Generator(np.random.PCG64DXSM(_sequence(seed, purpose, round, device)))


def generators(
    seed: int, purpose: str, round: int, devices: Sequence[int]
) -> Iterator[np.random.Generator]:
    """The generator of every device, ten times as fast as calling `generator` for each.

    Args:
        seed: See `generator`, as for `purpose` and `round`.
        purpose: A word.
        round: From 1.
        devices: Their numbers.

    >>> [g.random() for g in generators(7, "batches", 3, [1])]
    [0.5523747122105015]
    """
    for words in _state_words(_sequence(seed, purpose, round), np.asarray(devices, np.uint32)):
        yield np.random.Generator(np.random.PCG64DXSM(_Words(words)))  # type: ignore[arg-type]


def draws_of(
    seed: int, purpose: str, round: int, devices: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Uniform numbers; device k gets the k-th, whichever other devices are asked for.

    For a few devices of many it jumps to their numbers; otherwise drawing all is faster.

    Args:
        seed: See `generator`, as for `purpose` and `round`.
        purpose: A word.
        round: From 1.
        devices: [k] their numbers, in any order.

    >>> everybody = generator(7, "fading", 3).random(1000)
    >>> bool((draws_of(7, "fading", 3, np.array([999, 5])) == everybody[[999, 5]]).all())
    True
    """
    count = int(devices.max(initial=-1)) + 1
    random = generator(seed, purpose, round)
    if len(devices) * _JUMP > count:
        return random.random(count)[devices]
    order = np.argsort(devices)
    drawn, here = np.empty(len(devices)), 0
    bits = random.bit_generator
    assert isinstance(bits, np.random.PCG64DXSM)
    for row, device in zip(order.tolist(), devices[order].tolist(), strict=True):
        bits.advance(device - here)
        drawn[row] = random.random()
        here = device + 1
    return drawn


#: Number of draws that take as long as one jump.
_JUMP = 300


def _sequence(seed: int, purpose: str, *key: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=(zlib.crc32(purpose.encode()), *key))


class _Words(ISeedSequence):
    """A seed sequence with a known state."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self.words = words

    def generate_state(self, n_words: int, dtype: object = np.uint32) -> NDArray[np.uint64]:
        """The known state, which has the length that the bit generator asks for."""
        return self.words


def _state_words(
    parent: np.random.SeedSequence, children: NDArray[np.uint32]
) -> NDArray[np.uint64]:
    """[child, word]: what `SeedSequence` gives for the parent's key and a further number.

    NumPy promises never to change the algorithm, O'Neill's `seed_seq_fe`. The child's number is
    mixed in last, so everything before it is computed only once.
    """
    assert isinstance(parent.entropy, int)
    seed_words = max(4, -(-parent.entropy.bit_length() // 32))
    key_words = sum(max(1, -(-number.bit_length() // 32)) for number in parent.spawn_key)
    # one multiplication per step of the 16 that fill the pool, and four per further word
    multiplications = 16 + 4 * (seed_words - 4 + key_words)
    constant = 0x43B0D7E5 * pow(0x931E8875, multiplications, 1 << 32) % (1 << 32)
    state = np.empty((len(children), 8), np.uint32)
    for i in range(4):
        mixed, constant = _hashed(children, constant, 0x931E8875)
        mixed = np.uint32(0xCA01F9DD) * parent.pool[[i]] - np.uint32(0x4973F715) * mixed
        state[:, i] = state[:, i + 4] = mixed ^ mixed >> np.uint32(16)
    constant = 0x8B51F9DD
    for i in range(8):
        state[:, i], constant = _hashed(state[:, i], constant, 0x58F38DED)
    return state.astype("<u4").view("<u8").astype(np.uint64)


def _hashed(
    values: NDArray[np.uint32], constant: int, factor: int
) -> tuple[NDArray[np.uint32], int]:
    following = constant * factor % (1 << 32)
    mixed = (values ^ np.uint32(constant)) * np.uint32(following)
    return mixed ^ mixed >> np.uint32(16), following
