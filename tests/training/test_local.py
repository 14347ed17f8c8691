"""The trainer against bare torch loops over separate parameter tensors."""

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from slimfl.data import Samples
from slimfl.experiment import TrainingSection
from slimfl.nn import at_width, flatten, segments, slimmable
from slimfl.training import Images, LocalTrainer, Work, local_schedule

TWO, FOUR = (0.5, 1.0), (0.25, 0.5, 0.75, 1.0)
OPTIMISERS = {
    "adam": (
        {"optimiser": "adam", "learning_rate": 0.01, "betas": (0.8, 0.95), "weight_decay": 0.02},
        lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.95), weight_decay=0.02),
    ),
    "sgd": (
        {"optimiser": "sgd", "learning_rate": 0.05, "momentum": 0.8, "weight_decay": 0.02},
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.8, weight_decay=0.02),
    ),
}


def make_schedule(section, widths=TWO, trained=None, round=1, device=0):
    trained = tuple(range(len(widths))) if trained is None else trained
    return local_schedule(
        section,
        Work(trained),
        np.arange(40),
        width_count=len(widths),
        rounds=4,
        seed=3,
        round=round,
        device=device,
    )


def bare_loop(network, optimiser, widths, made, tensors, algorithm):
    """Plain PyTorch: the network's own parameters, one loop, no flat vector."""
    pictures, all_labels = tensors
    for step in range(made.steps):
        batch = made.samples[made.batch_offsets[step] : made.batch_offsets[step + 1]]
        x, labels = pictures[batch], all_labels[batch]
        for group in optimiser.param_groups:
            group["lr"] = made.learning_rates[step]

        def logits(width, x=x):
            with at_width(width):
                return network(x)

        def descend(loss):
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

        count = len(widths)
        if algorithm == "sustrain":
            full = logits(1.0)
            soft = torch.softmax(full.detach(), 1)
            loss = F.cross_entropy(full, labels) / count
            for width in widths[:-1]:
                loss = loss + F.cross_entropy(logits(width), soft) / count
            descend(loss)
        elif algorithm == "slimtrain":
            for width in reversed(widths):
                descend(F.cross_entropy(logits(width), labels) / count)
        elif algorithm == "ustrain":
            full = logits(1.0)
            soft = torch.softmax(full.detach(), 1)
            descend(F.cross_entropy(full, labels) / count)
            for width in reversed(widths[:-1]):
                descend(F.cross_entropy(logits(width), soft) / count)
        else:
            descend(F.cross_entropy(logits(widths[0]), labels))
    return flatten(network)


@pytest.mark.parametrize("kind", OPTIMISERS)
@pytest.mark.parametrize("algorithm", ["sustrain", "slimtrain", "ustrain"])
@pytest.mark.parametrize("widths", [TWO, FOUR], ids=["two widths", "four widths"])
def test_training_equals_a_bare_torch_loop(make_network, images, tensors, kind, algorithm, widths):
    values, optimiser = OPTIMISERS[kind]
    section = TrainingSection(
        algorithm=algorithm, batch_size=16, epochs=2, schedule="cosine", **values
    )
    made = make_schedule(section, widths, round=2)
    network = make_network()
    expected = bare_loop(network, optimiser(network.parameters()), widths, made, tensors, algorithm)
    start = flatten(make_network())
    trainer = LocalTrainer(make_network(), widths, section)
    found, _, _ = trainer.train(start, made, images, None)
    assert np.abs(expected - start).max() > 0.01
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("kind", OPTIMISERS)
@pytest.mark.parametrize("index", [0, 2, 3])
def test_training_one_width_equals_a_bare_torch_loop(make_network, images, tensors, kind, index):
    values, optimiser = OPTIMISERS[kind]
    section = TrainingSection(batch_size=16, epochs=1, **values)
    made = make_schedule(section, FOUR, trained=(index,))
    network = make_network()
    expected = bare_loop(
        network, optimiser(network.parameters()), (FOUR[index],), made, tensors, "one"
    )
    trainer = LocalTrainer(make_network(), FOUR, section)
    found, _, _ = trainer.train(flatten(make_network()), made, images, None)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
@pytest.mark.parametrize("index", range(4))
def test_one_width_touches_only_its_mask(make_network, images, optimiser, index):
    section = TrainingSection(optimiser=optimiser, learning_rate=0.01, epochs=2)
    start = flatten(make_network())
    trainer = LocalTrainer(make_network(), FOUR, section)
    made = make_schedule(section, FOUR, trained=(index,))
    found, _, _ = trainer.train(start, made, images, None)
    mask = segments(make_network(), FOUR).mask(FOUR[index])
    assert np.array_equal(found[~mask], start[~mask])
    assert (found[mask] != start[mask]).mean() > 0.95


# state


@pytest.mark.parametrize("kind", OPTIMISERS)
def test_two_lessons_with_kept_state_are_one_optimisers_work(make_network, images, tensors, kind):
    """State leaves after round 1, other devices train, it comes back in round 2."""
    values, optimiser = OPTIMISERS[kind]
    section = TrainingSection(batch_size=16, epochs=1, **values)
    schedules = [make_schedule(section, round=number) for number in (1, 2)]
    network = make_network()
    bare = optimiser(network.parameters())
    for made in schedules:
        expected = bare_loop(network, bare, TWO, made, tensors, "sustrain")

    trainer = LocalTrainer(make_network(), TWO, section)
    start = flatten(make_network())
    model, state, _ = trainer.train(start, schedules[0], images, None)
    trainer.train(start, make_schedule(section, device=1), images, None)
    model, _, _ = trainer.train(model, schedules[1], images, state)
    np.testing.assert_allclose(model, expected, rtol=0, atol=2e-5)

    other = LocalTrainer(make_network(), TWO, section)  # as after a resume
    again, state, _ = other.train(start, schedules[0], images, None)
    again, _, _ = LocalTrainer(make_network(), TWO, section).train(
        again, schedules[1], images, state
    )
    assert np.array_equal(again, model)


@pytest.mark.parametrize("kind", OPTIMISERS)
def test_a_fresh_state_forgets_the_round_before(make_network, images, kind):
    section = TrainingSection(batch_size=16, epochs=1, **OPTIMISERS[kind][0])
    trainer = LocalTrainer(make_network(), TWO, section)
    start = flatten(make_network())
    model, state, _ = trainer.train(start, make_schedule(section), images, None)
    second = make_schedule(section, round=2)
    fresh, _, _ = trainer.train(model, second, images, None)
    unused = LocalTrainer(make_network(), TWO, section)
    assert np.array_equal(fresh, unused.train(model, second, images, None)[0])
    kept, _, _ = trainer.train(model, second, images, state)
    assert not np.allclose(kept, fresh, atol=1e-5)


def test_training_is_the_same_whoever_trained_before(make_network, images):
    section = TrainingSection(learning_rate=0.01, epochs=1)
    start = flatten(make_network())
    trainer = LocalTrainer(make_network(), TWO, section)
    first = [
        trainer.train(start, make_schedule(section, device=d), images, None) for d in (0, 1, 2)
    ]
    again = [
        trainer.train(start, make_schedule(section, device=d), images, None) for d in (2, 1, 0)
    ]
    for (model, state, losses), (model2, state2, losses2) in zip(first, again[::-1], strict=True):
        assert np.array_equal(model, model2)
        assert np.array_equal(losses, losses2)
        assert all(np.array_equal(state[name], state2[name]) for name in state)


def test_dropout_is_a_function_of_the_schedule_too(samples):
    """The adapter admits dropout layers; their zeros must not depend on who trained before."""
    section = TrainingSection(learning_rate=0.01, epochs=1)
    torch.manual_seed(0)
    network = slimmable(
        nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.Dropout(0.5), nn.Linear(16, 3))
    )
    start = flatten(network)
    images = Images(samples, np.float32([0.5]), np.float32([0.25]))
    trainer = LocalTrainer(network, TWO, section)
    made = make_schedule(section)
    one, _, _ = trainer.train(start, made, images, None)
    torch.manual_seed(99)
    after = torch.rand(1)
    torch.manual_seed(99)
    same, _, _ = trainer.train(start, made, images, None)
    assert np.array_equal(one, same)
    assert torch.rand(1) == after  # and torch's own numbers go on as if nothing had happened
    elsewhere = dataclasses.replace(made, key=(3, 1, 7))
    assert not np.array_equal(one, trainer.train(start, elsewhere, images, None)[0])


def test_results_and_start_are_not_the_trainers_own_memory(make_network, images):
    section = TrainingSection(learning_rate=0.01, epochs=1)
    start = flatten(make_network())
    kept = start.copy()
    trainer = LocalTrainer(make_network(), TWO, section)
    model, _, _ = trainer.train(start, make_schedule(section), images, None)
    copy = model.copy()
    trainer.train(start, make_schedule(section, device=1), images, None)
    assert np.array_equal(model, copy)
    assert np.array_equal(start, kept)
    assert model.dtype == np.float32


# losses


def test_mean_losses_are_over_images_and_nan_for_widths_left_out(make_network, images, tensors):
    section = TrainingSection(optimiser="sgd", learning_rate=1e-12, batch_size=7, epochs=1)
    pictures, labels = tensors
    network = make_network()

    def logits(width, batch):
        with at_width(width), torch.no_grad():
            return network(pictures[batch])

    start = flatten(network)
    made = make_schedule(section, FOUR, trained=(0, 3))
    assert np.diff(made.batch_offsets)[-1] == 5  # a short batch counts for less
    everything = np.arange(40)  # nothing moves, so all batches are one
    full = logits(1.0, everything)
    expected = [
        F.cross_entropy(logits(0.25, everything), torch.softmax(full, 1)).item(),
        F.cross_entropy(full, labels[everything]).item(),
    ]
    trainer = LocalTrainer(make_network(), FOUR, section)
    _, _, losses = trainer.train(start, made, images, None)
    np.testing.assert_allclose(losses[[0, 3]], expected, rtol=1e-5)
    assert np.isnan(losses[[1, 2]]).all()


def test_a_sandwiched_width_is_averaged_over_its_own_visits(make_network, images):
    section = TrainingSection(
        algorithm="ustrain", order="accumulate", sampled_widths=3, optimiser="sgd",
        learning_rate=1e-12, batch_size=40, steps=30,
    )  # fmt: skip
    made = make_schedule(section, FOUR)
    assert (made.visits.sum(axis=0)[[1, 2]] < 30).all()
    trainer = LocalTrainer(make_network(), FOUR, section)
    _, _, losses = trainer.train(flatten(make_network()), made, images, None)
    everything = TrainingSection(optimiser="sgd", learning_rate=1e-12, batch_size=40, steps=30)
    _, _, expected = LocalTrainer(make_network(), FOUR, everything).train(
        flatten(make_network()), make_schedule(everything, FOUR), images, None
    )
    # every batch holds all 40 samples and nothing moves, so each visit has the same loss
    np.testing.assert_allclose(losses, expected, rtol=1e-5)


# images


@pytest.mark.parametrize("channels", [1, 3])
def test_a_batch_is_normalised_per_channel_and_in_torchs_order(channels):
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (6, 4, 5, channels), dtype=np.uint8)
    mean = random.uniform(0.2, 0.6, channels).astype(np.float32)
    deviation = random.uniform(0.1, 0.5, channels).astype(np.float32)
    held = Images(Samples(pixels, np.arange(6)), mean, deviation)
    for index in (torch.tensor([4, 0, 4]), slice(1, 3)):
        batch, labels = held.batch(index)
        taken = pixels[index.numpy() if isinstance(index, torch.Tensor) else index]
        expected = ((taken / 255.0 - mean) / deviation).transpose(0, 3, 1, 2)
        assert batch.shape == expected.shape
        assert batch.dtype == torch.float32
        np.testing.assert_allclose(batch.numpy(), expected, rtol=1e-4, atol=1e-5)
        assert labels.tolist() == np.arange(6)[index].tolist()


def test_taking_a_batch_does_not_change_the_samples():
    pixels = np.full((3, 2, 2, 1), 100, np.uint8)
    held = Images(Samples(pixels, np.zeros(3, np.int64)), np.float32([0.5]), np.float32([0.1]))
    one, _ = held.batch(slice(0, 3))
    other, _ = held.batch(slice(0, 3))
    assert torch.equal(one, other)
    assert (pixels == 100).all()
