"""Schedules: which batches, which widths, which learning rates."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slimfl.errors import RequestError
from slimfl.experiment import TrainingSection
from slimfl.training import Work, learning_rates, local_schedule, planned_images

HELD = np.arange(100, 123)


def make(held=HELD, widths=(0, 1), width_count=2, round=1, device=0, seed=0, rounds=10, **values):
    return local_schedule(
        TrainingSection(**values),
        Work(tuple(widths)),
        held,
        width_count=width_count,
        rounds=rounds,
        seed=seed,
        round=round,
        device=device,
    )


def test_devices_share_what_nobody_may_write_to():
    one, other = make(device=1), make(np.arange(len(HELD)), device=2)
    for name in ("batch_offsets", "visits"):
        assert getattr(one, name) is getattr(other, name)
        with pytest.raises(ValueError, match="read-only"):
            getattr(one, name)[0] = 1


def batches(made):
    return [
        made.samples[begin:end].tolist()
        for begin, end in zip(made.batch_offsets[:-1], made.batch_offsets[1:], strict=True)
    ]


# batches


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 40), st.integers(1, 50), st.integers(1, 4), st.integers(0, 99))
def test_every_epoch_is_a_permutation_in_full_batches_and_a_short_last_one(
    count, batch_size, epochs, seed
):
    held = np.arange(count) * 3 + 5
    taken = batches(make(held, batch_size=batch_size, epochs=epochs, seed=seed))
    per_epoch = math.ceil(count / batch_size)
    assert len(taken) == epochs * per_epoch
    for epoch in range(epochs):
        part = taken[epoch * per_epoch : (epoch + 1) * per_epoch]
        assert sorted(sample for batch in part for sample in batch) == held.tolist()
        assert [len(batch) for batch in part[:-1]] == [batch_size] * (per_epoch - 1)
        assert len(part[-1]) == count - batch_size * (per_epoch - 1)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 40), st.integers(1, 50), st.integers(1, 30), st.integers(0, 99))
def test_steps_are_epochs_cut_short(count, batch_size, steps, seed):
    """Fewer steps than an epoch has, or more: always the beginning of enough epochs."""
    held = np.arange(count)
    made = make(held, batch_size=batch_size, steps=steps, seed=seed)
    taken = batches(made)
    assert made.steps == len(taken) == len(made.visits) == len(made.learning_rates) == steps
    enough = math.ceil(steps / math.ceil(count / batch_size))
    whole = batches(make(held, batch_size=batch_size, epochs=enough, seed=seed))
    assert taken == whole[:steps]
    assert made.samples.size == sum(len(batch) for batch in taken)


def test_epochs_are_shuffled_anew():
    taken = make(batch_size=23, epochs=3).samples.reshape(3, 23).tolist()
    assert taken[0] != taken[1] != taken[2] != taken[0]
    assert HELD.tolist() not in taken


def test_neither_steps_nor_epochs_gives_a_hundred_steps():
    assert make().steps == 100


def test_batches_are_a_function_of_seed_round_and_device():
    base = make(epochs=1)
    assert np.array_equal(base.samples, make(epochs=1).samples)
    for change in ({"seed": 1}, {"round": 2}, {"device": 1}):
        assert not np.array_equal(base.samples, make(epochs=1, **change).samples)
    # and of nothing that a method chooses
    for other in (
        {"widths": (1,)},
        {"algorithm": "ustrain"},
        {"learning_rate": 0.5},
        {"rounds": 99},
        {"width_count": 5},
    ):
        assert np.array_equal(base.samples, make(epochs=1, **other).samples)


def test_held_samples_are_left_in_their_order():
    held = HELD.copy()
    make(held, epochs=2)
    assert np.array_equal(held, HELD)


# widths


def test_all_widths_take_part_in_every_step_with_equal_weights_by_default():
    made = make(widths=(0, 1, 2), width_count=3, epochs=1)
    assert made.visits.all()
    assert made.weights == pytest.approx((1 / 3,) * 3)
    assert made.step == "sustrain"
    assert make(weights=(0.3, 0.7), epochs=1).weights == (0.3, 0.7)


@pytest.mark.parametrize("width", range(4))
def test_work_of_one_width_trains_that_width_alone(width):
    made = make(widths=(width,), width_count=4, algorithm="ustrain", sampled_widths=2, epochs=1)
    assert made.step == "one-width"
    assert (made.visits == (np.arange(4) == width)).all()


@pytest.mark.parametrize("sampled", [1, 2, 3, 4, 5, 6, 9])
def test_the_sandwich_rule_visits_the_ends_always_and_the_others_by_lot(sampled):
    made = make(
        widths=range(6), width_count=6, algorithm="ustrain", sampled_widths=sampled,
        steps=3000, batch_size=23,
    )  # fmt: skip
    assert made.visits[:, [0, 5]].all()
    expected = min(max(sampled, 2), 6)
    assert (made.visits.sum(axis=1) == expected).all()
    chance = (expected - 2) / 4
    frequencies = made.visits[:, 1:5].mean(axis=0)
    assert np.abs(frequencies - chance).max() <= 5 * math.sqrt(chance * (1 - chance) / 3000)
    if expected == 4:  # every pair of the four inner widths comes up equally often
        pairs = np.unique(made.visits[:, 1:5], axis=0, return_counts=True)[1]
        assert len(pairs) == 6
        assert np.abs(pairs - 500).max() < 5 * math.sqrt(500)


def test_the_sandwich_is_a_function_of_seed_round_and_device():
    def visits(**values):
        return make(
            widths=range(5), width_count=5, algorithm="ustrain", sampled_widths=3,
            steps=40, **values,
        ).visits  # fmt: skip

    assert np.array_equal(visits(), visits())
    for change in ({"seed": 1}, {"round": 2}, {"device": 1}):
        assert not np.array_equal(visits(), visits(**change))


@pytest.mark.parametrize("algorithm", ["sustrain", "slimtrain"])
def test_only_ustrain_samples_widths(algorithm):
    made = make(widths=range(5), width_count=5, algorithm=algorithm, sampled_widths=2, epochs=1)
    assert made.visits.all()


def test_work_of_some_widths_leaves_the_others_out():
    made = make(widths=(0, 1, 2), width_count=5, algorithm="ustrain", sampled_widths=2, epochs=1)
    assert (made.visits == [True, False, True, False, False]).all()
    made = make(widths=(1, 3, 4), width_count=5, algorithm="ustrain", sampled_widths=2, epochs=1)
    assert (made.visits == [False, True, False, False, True]).all()


# learning rates


def test_constant_and_cosine_schedules():
    constant = TrainingSection(learning_rate=0.02)
    assert learning_rates(constant, 10, 7, 3).tolist() == [0.02] * 3
    cosine = TrainingSection(learning_rate=0.02, schedule="cosine")
    by_round = [learning_rates(cosine, 4, number, 2) for number in (1, 2, 3, 4)]
    half = 0.01 * math.sqrt(0.5)
    np.testing.assert_allclose(
        by_round, [[0.02] * 2, [0.01 + half] * 2, [0.01] * 2, [0.01 - half] * 2]
    )


def test_theorem_1s_rate_counts_steps_from_1_across_rounds():
    mu, big_l = 0.5, 4.0
    section = TrainingSection(schedule="theorem1", strong_convexity=mu, smoothness=big_l)
    found = np.concatenate([learning_rates(section, 10, number, 5) for number in (1, 2, 3)])
    expected = [2 / (mu * t + 2 * big_l - mu) for t in range(1, 16)]
    np.testing.assert_allclose(found, expected)
    assert found[0] == pytest.approx(1 / big_l)
    assert found.max() <= 1 / big_l


def test_a_lesson_carries_the_rates_of_its_round():
    made = make(schedule="theorem1", smoothness=2.0, steps=4, round=3)
    np.testing.assert_allclose(made.learning_rates, [2 / (t + 3) for t in (9, 10, 11, 12)])


# a part of the local work


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 40), st.integers(1, 50), st.integers(1, 5), st.floats(0.01, 1))
def test_less_effort_is_the_beginning_of_the_whole_work(count, batch_size, epochs, effort):
    held = np.arange(count)
    section = TrainingSection(batch_size=batch_size, epochs=epochs)
    common = {"width_count": 2, "rounds": 9, "seed": 3, "round": 2, "device": 1}
    whole = local_schedule(section, Work((0, 1)), held, **common)
    part = local_schedule(section, Work((0, 1), effort=effort), held, **common)
    assert part.steps == max(1, round(effort * whole.steps))
    assert batches(part) == batches(whole)[: part.steps]
    planned = planned_images(
        section, Work((0, 1), effort=effort), count,
        width_count=2, seed=3, round=2, device=1,
    )  # fmt: skip
    assert planned.tolist() == part.images_seen.tolist() == [len(part.samples)] * 2


@pytest.mark.parametrize("effort", [0.0, -0.5, 1.01, math.nan, math.inf])
def test_an_effort_that_is_no_part_is_refused(effort):
    with pytest.raises(RequestError, match="above 0, at most 1"):
        Work((0,), effort=effort)


def test_the_theorems_schedule_needs_whole_work():
    with pytest.raises(RequestError, match="choose another schedule"):
        local_schedule(
            TrainingSection(schedule="theorem1"), Work((0, 1), effort=0.5), HELD,
            width_count=2, rounds=1, seed=0, round=1, device=0,
        )  # fmt: skip
