"""A receiver that follows the definition literally, and splits that can be decoded."""

import math

import pytest


@pytest.fixture
def decode():
    """Successive decoding in watts, as section IV of the paper tells it.

    Message i is decoded when W log2(1 + g d^-beta P_i / (sigma^2 + interference)) reaches u_i; the
    messages after it interfere, those before it are cancelled. Gives the number of messages, and
    how close the nearest of all comparisons was (ratio of throughput to rate, minus 1).
    """

    def decode(gain, rates, split, *, noise_dbm, power_dbm=23.0, distance_m=100.0, exponent=2.5):
        noise_w = 10 ** (noise_dbm / 10) / 1000 if noise_dbm is not None else 0.0
        power_w = 10 ** (power_dbm / 10) / 1000
        received = [gain * distance_m**-exponent * share * power_w for share in split]
        count, closest = 0, math.inf
        for i, rate in enumerate(rates):
            interference = sum(received[i + 1 :])
            below = noise_w + interference
            throughput = math.log2(1 + received[i] / below) if below else math.inf
            closest = min(closest, abs(throughput / rate - 1))
            if throughput < rate:
                break
            count += 1
        return count, closest

    return decode


@pytest.fixture
def from_margins():
    """The split that leaves given margins a_i > 0: every feasible split is one of these."""

    def build(rates, margins):
        targets = [2**rate - 1 for rate in rates]
        shares, after = [], 0.0
        for target, margin in zip(reversed(targets), reversed(margins), strict=True):
            shares.append(margin + target * after)
            after += shares[-1]
        total = sum(shares)
        return tuple(share / total for share in reversed(shares))

    return build
