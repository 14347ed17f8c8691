"""The partition: no sample is shared, no device has too few, alpha works as documented."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slimfl.data import partition
from slimfl.errors import RequestError
from slimfl.experiment import DataSection

KINDS = ("dirichlet", "dirichlet-equal", "iid", "shards")
BALANCED = np.arange(6000) % 10


def section(kind="dirichlet", **values):
    return DataSection(partition=kind, **values)


def max_shares(labels, dealt):
    """For every device, the share of its most frequent class."""
    return np.array(
        [
            max(np.mean(labels[dealt.of(device)] == c) for c in np.unique(labels))
            for device in range(dealt.devices)
        ]
    )


@st.composite
def cases(draw):
    count = draw(st.integers(20, 400))
    labels = np.random.default_rng(draw(st.integers(0, 99))).integers(
        0, draw(st.integers(1, 12)), count
    )
    devices = draw(st.integers(1, count // 4))
    least = draw(st.integers(1, count // devices))
    alpha = draw(st.sampled_from([1e-6, 0.01, 0.1, 1.0, 10.0, 1e6]))
    kind = draw(st.sampled_from(KINDS))
    each = draw(st.integers(1, max(1, min(4, count // devices))))
    return labels, devices, section(kind, min_samples=least, alpha=alpha, shards_per_device=each)


@settings(deadline=None, max_examples=150)
@given(cases(), st.integers(0, 2**40))
def test_parts_are_disjoint_complete_and_not_too_small(case, seed):
    labels, devices, chosen = case
    dealt = partition(labels, devices, chosen, seed)
    assert dealt.devices == devices
    held = np.concatenate([dealt.of(device) for device in range(devices)])
    assert len(set(held.tolist())) == len(held)
    assert held.min() >= 0
    assert held.max() < len(labels)
    assert dealt.sizes.tolist() == [len(dealt.of(device)) for device in range(devices)]
    assert dealt.sizes.min() >= chosen.min_samples
    if chosen.partition == "dirichlet-equal":
        assert dealt.sizes.tolist() == [len(labels) // devices] * devices
    else:
        assert len(held) == len(labels)


@settings(deadline=None, max_examples=40)
@given(cases(), st.integers(0, 2**40))
def test_class_counts_are_those_of_a_plain_loop(case, seed):
    labels, devices, chosen = case
    dealt = partition(labels, devices, chosen, seed)
    classes = int(labels.max()) + 2  # a class that nobody has stays in the table
    naive = [[0] * classes for _ in range(devices)]
    for device in range(devices):
        for sample in dealt.of(device):
            naive[device][labels[sample]] += 1
    assert dealt.class_counts(labels, classes).tolist() == naive


@pytest.mark.parametrize("kind", KINDS)
def test_a_partition_is_a_function_of_its_seed(kind):
    one, same = (partition(BALANCED, 10, section(kind), seed=5) for _ in range(2))
    other = partition(BALANCED, 10, section(kind), seed=6)
    assert np.array_equal(one.indices, same.indices)
    assert np.array_equal(one.offsets, same.offsets)
    assert not np.array_equal(one.indices, other.indices)


@pytest.mark.parametrize("kind", ["dirichlet", "dirichlet-equal"])
def test_a_smaller_alpha_gives_more_skew(kind):
    def skew(alpha):
        dealt = [partition(BALANCED, 10, section(kind, alpha=alpha), seed) for seed in range(8)]
        return np.mean([max_shares(BALANCED, one) for one in dealt])

    skews = [skew(alpha) for alpha in (0.01, 0.1, 1.0, 10.0, 1000.0)]
    assert all(before > after + 0.02 for before, after in itertools.pairwise(skews))
    assert skews[0] > 0.6
    assert skews[-1] < 0.15


def test_the_shares_of_a_class_have_the_moments_of_the_dirichlet_distribution():
    """A share of Dir(alpha, ..., alpha) over K devices has mean 1/K and a known variance."""
    devices, alpha = 5, 0.5
    shares = []
    for seed in range(150):
        dealt = partition(BALANCED, devices, section(alpha=alpha, min_samples=1), seed)
        shares.append(dealt.class_counts(BALANCED, 10) / 600)
    shares = np.array(shares)
    variance = (devices - 1) / (devices**2 * (devices * alpha + 1))
    assert shares.mean(axis=(0, 2)) == pytest.approx(1 / devices, abs=5 * np.sqrt(variance / 1500))
    assert shares.var() == pytest.approx(variance, rel=0.1)
    # classes are dealt independently of one another
    correlation = np.corrcoef(shares[:, 0].T)[np.triu_indices(10, k=1)]
    assert np.abs(correlation).max() < 5 / np.sqrt(150)


def test_a_tiny_alpha_gives_every_class_to_one_device_whole():
    labels = np.arange(4000) % 40
    counts = partition(labels, 2, section(alpha=1e-6, min_samples=1), 0).class_counts(labels, 40)
    assert set(counts.ravel().tolist()) == {0, 100}


@pytest.mark.parametrize("kind", ["dirichlet", "dirichlet-equal"])
def test_a_device_holds_a_random_part_of_a_class(kind):
    labels = np.zeros(1000, np.int64)
    held = partition(labels, 2, section(kind, alpha=1e6), 0).of(0)
    in_first_half = np.mean(held < 500)
    assert 0.4 < in_first_half < 0.6


@pytest.mark.parametrize("kind", ["dirichlet", "dirichlet-equal"])
def test_a_large_alpha_approaches_iid(kind):
    dealt = partition(BALANCED, 10, section(kind, alpha=1e6), seed=1)
    expected = 6000 / 100
    counts = dealt.class_counts(BALANCED, 10)
    # as close as independent draws (dirichlet-equal) or closer (dirichlet: rounding only)
    assert np.abs(counts - expected).max() < (3 if kind == "dirichlet" else 5 * np.sqrt(expected))


def test_iid_parts_are_equal_in_size_and_alike_in_classes():
    dealt = partition(BALANCED[:5995], 10, section("iid"), seed=3)
    assert set(dealt.sizes.tolist()) == {599, 600}
    assert np.abs(dealt.class_counts(BALANCED, 10) - 60).max() < 5 * np.sqrt(60)
    assert not np.array_equal(np.sort(dealt.of(0)), np.arange(0, 5995, 10))  # dealt at random


@pytest.mark.parametrize("each", [1, 2, 3])
def test_shards_give_a_device_few_classes(each):
    labels = np.random.default_rng(0).permutation(np.arange(6000) % 10)
    dealt = partition(labels, 10, section("shards", shards_per_device=each), seed=2)
    assert set(dealt.sizes.tolist()) == {600}
    classes = (dealt.class_counts(labels, 10) > 0).sum(axis=1)
    # a shard crosses at most one border between classes
    assert classes.max() <= 2 * each
    if each < 3:  # 10 or 20 equal shards of 10 equal classes cross none
        assert classes.max() <= each
        assert classes.max() > each - 1


def test_shards_hold_a_random_part_of_their_class():
    labels = np.repeat([0, 1], 100)
    dealt = partition(labels, 4, section("shards", shards_per_device=1), seed=0)
    firsts = [sorted(dealt.of(d).tolist()) for d in range(4) if labels[dealt.of(d)].max() == 0]
    assert len(firsts) == 2
    assert list(range(50)) not in firsts


def test_the_minimum_takes_from_the_rich_and_leaves_the_rest_alone():
    free = partition(BALANCED, 10, section(alpha=0.05, min_samples=1), seed=4)
    topped = partition(BALANCED, 10, section(alpha=0.05, min_samples=200), seed=4)
    assert free.sizes.min() < 200
    assert topped.sizes.min() == 200
    for device in range(10):
        before, after = set(free.of(device).tolist()), set(topped.of(device).tolist())
        if len(before) <= 200:
            assert before <= after
            assert len(after) == 200
        else:
            assert after <= before


def test_what_the_rich_give_is_drawn_at_random():
    labels = np.zeros(1000, np.int64)
    dealt = partition(labels, 10, section(alpha=1e-6, min_samples=50), seed=0)
    (rich,) = np.flatnonzero(dealt.sizes > 50)
    assert dealt.sizes[rich] == 550
    kept = dealt.of(rich)
    for part in range(10):  # 55 of every hundred on average
        assert 40 < np.sum(kept // 100 == part) < 70


@pytest.mark.parametrize("kind", KINDS)
def test_more_devices_than_samples_are_refused_with_the_numbers(kind):
    with pytest.raises(RequestError) as caught:
        partition(np.zeros(9, np.int64), 10, section(kind, min_samples=1, shards_per_device=1), 0)
    message = str(caught.value)
    assert "10 devices" in message
    assert "9" in message
    assert "federation.devices" in message


def test_a_minimum_that_cannot_be_met_is_refused_and_the_limit_is_exact():
    labels = np.zeros(100, np.int64)
    assert partition(labels, 10, section(min_samples=10, alpha=0.01), 0).sizes.tolist() == [10] * 10
    with pytest.raises(RequestError, match="min_samples"):
        partition(labels, 10, section(min_samples=11), 0)


def test_more_shards_than_samples_are_refused():
    with pytest.raises(RequestError, match="shards_per_device"):
        partition(
            np.zeros(20, np.int64), 10, section("shards", min_samples=1, shards_per_device=3), 0
        )


# as the data say


def test_naturally_every_sample_stays_with_its_holder():
    random = np.random.default_rng(1)
    labels, holders = random.integers(10, size=500), random.integers(7, size=500)
    dealt = partition(labels, 7, section("natural"), seed=0, holders=holders)
    for device in range(7):
        assert dealt.of(device).tolist() == [i for i in range(500) if holders[i] == device]
    other_seed = partition(labels, 7, section("natural"), seed=9, holders=holders)
    assert other_seed.indices.tolist() == dealt.indices.tolist()


def test_with_fewer_devices_the_first_of_the_data_take_part():
    holders = np.array([2, 0, 1, 0, 2])
    dealt = partition(np.zeros(5, np.int64), 2, section("natural"), seed=0, holders=holders)
    assert [dealt.of(device).tolist() for device in range(2)] == [[1, 3], [2]]


def test_data_without_holders_and_too_many_devices_are_refused():
    labels = np.zeros(5, np.int64)
    with pytest.raises(RequestError, match="holders="):
        partition(labels, 2, section("natural"), seed=0)
    with pytest.raises(RequestError, match=r"federation.devices to 2"):
        partition(labels, 3, section("natural"), seed=0, holders=np.array([0, 1, 1, 0, 0]))
