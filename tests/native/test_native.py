"""The native engine against plain torch."""

from __future__ import annotations

import itertools

import _native
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from native_reference import (
    Sizes,
    distance_to_a_kink,
    logits,
    losses,
    normalise,
    random_theta,
    train,
)
from torch.nn import functional

LEVELS = _native.simd_levels()
PAPER = Sizes(1, 28, 28, (32, 32, 64), 10, ((16, 16, 32), (32, 32, 64)))
SMALL = Sizes(1, 9, 7, (8, 16, 24), 5, ((3, 5, 7), (8, 9, 16), (8, 16, 24)))


def make(sizes: Sizes, simd: str = "auto") -> _native.Network:
    return _native.Network(
        sizes.in_channels, sizes.height, sizes.width, sizes.channels, sizes.classes,
        list(sizes.active), simd=simd,
    )  # fmt: skip


def device(problem, order, offsets, rates, visits=None):
    """One that trains for the first time, as the module takes it."""
    m, v = np.zeros((2, problem.theta.size), np.float32)
    return order, offsets, m, v, 0, rates, visits


class Problem:
    """Random images, labels, weights and normalisation."""

    def __init__(self, sizes: Sizes, count: int, seed: int = 0, spread: float = 1.5) -> None:
        rng = np.random.default_rng(seed)
        self.sizes = sizes
        self.rng = rng
        shape = (count, sizes.height, sizes.width, sizes.in_channels)
        self.images = rng.integers(0, 256, shape, dtype=np.uint8)
        self.labels = rng.integers(0, sizes.classes, count, dtype=np.int64)
        self.mean = rng.uniform(0.2, 0.6, sizes.in_channels).astype(np.float32)
        self.std = rng.uniform(0.2, 0.6, sizes.in_channels).astype(np.float32)
        self.theta = random_theta(sizes, rng, spread)
        self.weights = rng.uniform(0.3, 1.5, len(sizes.active))
        self.x = normalise(self.images, self.mean, self.std)
        self.y = torch.from_numpy(self.labels)

    @property
    def data(self):
        return self.images, self.labels

    @property
    def normalisation(self) -> dict[str, np.ndarray]:
        return {"mean": self.mean, "std": self.std}

    def train(self, net, devices, theta=None, **options):
        """Parameters, steps and losses of every device."""
        start = self.theta if theta is None else theta
        return net.train_cohort(start, devices, *self.data, **self.normalisation, **options)

    def gradient(self, net, index, *more, **options):
        return net.gradient(self.theta, *self.data, index, self.mean, self.std, *more, **options)

    def expected_gradient(self, algorithm, visited, index, dtype=torch.float64):
        theta = torch.tensor(self.theta, dtype=dtype, requires_grad=True)
        x, y = self.x[index].to(dtype), self.y[index]
        if algorithm == "width":
            parts = {
                visited[0]: functional.cross_entropy(logits(self.sizes, theta, x, visited[0]), y)
            }
            parts[visited[0]].backward()
        else:
            parts = losses(self.sizes, theta, x, y, algorithm, visited)
            sum(self.weights[w] * part for w, part in parts.items()).backward()
        return theta.grad.numpy(), {w: float(part.detach()) for w, part in parts.items()}


@st.composite
def sizes_strategy(draw):
    count = draw(st.integers(1, 4))
    channels = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24, 31, 32, 33, 40, 64])
    columns = [sorted(draw(st.lists(channels, min_size=count, max_size=count))) for _ in range(3)]
    active = tuple(zip(*columns, strict=True))
    side = st.integers(1, 12)
    into, classes = draw(st.integers(1, 3)), draw(st.integers(1, 11))
    return Sizes(into, draw(side), draw(side), active[-1], classes, active)


def assert_gradient(actual, expected, rounding=0.0, tolerance=1e-5):
    """`rounding` is what 32-bit numbers cost torch: much, where large terms cancel."""
    close = tolerance * (np.linalg.norm(expected) + 1e-6) + 4 * rounding
    assert np.linalg.norm(actual - expected) <= close


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    sizes=sizes_strategy(),
    batch=st.integers(1, 9),
    seed=st.integers(0, 2**31),
    algorithm=st.sampled_from(["sustrain", "slimtrain", "ustrain", "width"]),
    simd=st.sampled_from(LEVELS),
    data=st.data(),
)
def test_gradient(sizes, batch, seed, algorithm, simd, data):
    problem = Problem(sizes, 12, seed)
    index = problem.rng.integers(0, 12, batch)
    count = len(sizes.active)
    taking_part = data.draw(st.sets(st.integers(0, count - 1), min_size=1))
    visits = np.isin(np.arange(count), list(taking_part)).astype(np.uint8)
    width = data.draw(st.integers(0, count - 1)) if algorithm == "width" else None
    visited = [width] if algorithm == "width" else [w for w in range(count) if visits[w]]
    gradient, found = problem.gradient(
        make(sizes, simd), index, algorithm, problem.weights, visits, width
    )
    # An activation within rounding of 0 or 6 may fall on either side of the gradient's jump.
    precise, x = torch.tensor(problem.theta).double(), problem.x[index].double()
    assume(distance_to_a_kink(sizes, precise, x, visited) > 1e-5)
    expected, expected_losses = problem.expected_gradient(algorithm, visited, index)
    in_32_bits, _ = problem.expected_gradient(algorithm, visited, index, torch.float32)
    assert_gradient(gradient, expected, np.linalg.norm(in_32_bits - expected))
    for w in range(count):
        if w in expected_losses:
            assert found[w] == pytest.approx(expected_losses[w], rel=1e-5, abs=1e-5)
        else:
            assert np.isnan(found[w])


@pytest.mark.parametrize("simd", LEVELS)
@pytest.mark.parametrize("algorithm", ["sustrain", "slimtrain", "ustrain"])
def test_gradient_of_the_paper(simd, algorithm):
    problem = Problem(PAPER, 16)
    index = np.arange(16)
    plain = problem.images[..., 0].copy(), problem.labels.astype(np.uint8)
    gradient, _ = make(PAPER, simd).gradient(
        problem.theta, *plain, index, problem.mean, problem.std, algorithm, problem.weights
    )
    assert make(PAPER).parameter_count == 4586
    expected, _ = problem.expected_gradient(algorithm, [0, 1], index)
    assert_gradient(gradient, expected)


OPTIMISERS = {
    "adam": ({"optimiser": "adam"}, lambda p: torch.optim.Adam(p)),
    "adam decay": (
        {"optimiser": "adam", "betas": (0.8, 0.99), "eps": 1e-6, "weight_decay": 0.01},
        lambda p: torch.optim.Adam(p, betas=(0.8, 0.99), eps=1e-6, weight_decay=0.01),
    ),
    "sgd": ({"optimiser": "sgd"}, lambda p: torch.optim.SGD(p, lr=1)),
    "sgd momentum": (
        {"optimiser": "sgd", "momentum": 0.9, "weight_decay": 0.01},
        lambda p: torch.optim.SGD(p, lr=1, momentum=0.9, weight_decay=0.01),
    ),
    "sgd nesterov": (
        {"optimiser": "sgd", "momentum": 0.9, "nesterov": True},
        lambda p: torch.optim.SGD(p, lr=1, momentum=0.9, nesterov=True),
    ),
}
MODES = [
    ("sustrain", "accumulate"),
    ("slimtrain", "accumulate"),
    ("slimtrain", "sequential"),
    ("ustrain", "accumulate"),
    ("ustrain", "sequential"),
]


def schedule(problem: Problem, epochs: int, batch: int, count: int):
    """Shuffled batches, cut at the epochs, and random visits and rates."""
    orders, offsets = [], [0]
    for _ in range(epochs):
        orders.append(problem.rng.permutation(len(problem.images))[:count])
        for start in range(0, count, batch):
            offsets.append(offsets[-1] + min(batch, count - start))
    steps = len(offsets) - 1
    count_of_widths = len(problem.sizes.active)
    visits = problem.rng.integers(0, 2, (steps, count_of_widths), dtype=np.uint8)
    # no step without a width; the full one need not take part
    visits[np.arange(steps), problem.rng.integers(0, count_of_widths, steps)] = 1
    rates = 1e-3 * 0.9 ** np.arange(steps)
    return np.concatenate(orders), np.array(offsets), rates, visits


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize(("algorithm", "mode"), MODES)
@pytest.mark.parametrize("epochs", [1, 2])
def test_training(name, algorithm, mode, epochs):
    options, build = OPTIMISERS[name]
    problem = Problem(SMALL, 30, spread=0.7)
    order, offsets, rates, visits = schedule(problem, epochs, 8, 30)
    net = make(SMALL)
    m, v = np.zeros((2, problem.theta.size), np.float32)
    # In two calls, to see the state carried over.
    half = len(rates) // 2
    theta, step = problem.theta, 0
    for part in (slice(0, half), slice(half, len(rates))):
        cuts = offsets[part.start : part.stop + 1]
        one = (order, cuts, m, v, step, rates[part], visits[part])
        [(theta, step, found)] = problem.train(
            net, [one], theta, algorithm=algorithm, mode=mode, weights=problem.weights, **options
        )
        assert (np.isfinite(found) == visits[part].any(0)).all()
    leaf = torch.tensor(problem.theta, requires_grad=True)
    batches = [order[a:b] for a, b in itertools.pairwise(offsets)]
    how = (rates, algorithm, mode, problem.weights, visits)
    train(SMALL, leaf, build([leaf]), problem.x, problem.y, batches, *how)
    expected = leaf.detach().numpy()
    assert step == (visits.sum() if mode == "sequential" else len(rates))
    moved = np.linalg.norm(expected - problem.theta)
    assert moved > 0
    assert np.linalg.norm(theta - expected) < 1e-3 * moved


def test_one_adam_step_is_that_of_torch():
    problem = Problem(PAPER, 8)
    gradient, _ = problem.gradient(make(PAPER), np.arange(8))
    one = device(problem, np.arange(8), np.array([0, 8]), np.array([0.01]))
    [(theta, step, _)] = problem.train(make(PAPER), [one])
    leaf = torch.tensor(problem.theta, requires_grad=True)
    leaf.grad = torch.from_numpy(gradient)
    optimiser = torch.optim.Adam([leaf], lr=0.01)
    optimiser.step()
    assert step == 1
    np.testing.assert_allclose(theta, leaf.detach().numpy(), rtol=1e-6, atol=1e-8)
    moments = optimiser.state[leaf]
    np.testing.assert_allclose(one[2], moments["exp_avg"].numpy(), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(one[3], moments["exp_avg_sq"].numpy(), rtol=1e-5, atol=1e-18)


def test_one_width_training_leaves_the_rest():
    problem = Problem(SMALL, 20)
    one = device(problem, np.arange(20), np.array([0, 10, 20]), np.full(2, 0.01))
    [(theta, _, found)] = problem.train(make(SMALL), [one], algorithm="width", width_index=0)
    assert np.isfinite(found[0])
    assert np.isnan(found[1:]).all()
    moved = (theta != problem.theta)[: 8 * 9].reshape(8, 9)  # the first convolution
    assert moved[:3].any()
    assert not moved[3:].any()


def cohort(problem: Problem, counts: list[int]):
    return [device(problem, *schedule(problem, 2, 4, count)) for count in counts]


def copied(devices):
    return [(*d[:2], d[2].copy(), d[3].copy(), *d[4:]) for d in devices]


@pytest.mark.parametrize("simd", LEVELS)
def test_threads_do_not_change_bits(simd):
    results = []
    for threads in (1, 2, 3, 7):
        problem = Problem(SMALL, 30)
        devices = cohort(problem, [3, 30, 1, 12, 7])
        out = problem.train(make(SMALL, simd), devices, threads=threads)
        results.append([(theta.tobytes(), step, loss.tobytes()) for theta, step, loss in out])
        results[-1] += [(one[2].tobytes(), one[3].tobytes()) for one in devices]
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("own_models", [False, True])
def test_a_cohort_is_its_devices(own_models):
    problem = Problem(SMALL, 30)
    devices = cohort(problem, [5, 30, 9])
    net, again = make(SMALL), copied(devices)
    factors = np.float32([1.0, 0.5, 2.0] if own_models else [1.0, 1.0, 1.0])
    thetas = [problem.theta * factor for factor in factors]
    out = problem.train(net, devices, thetas if own_models else problem.theta, threads=2)
    for theta, one, (found, steps, _) in zip(thetas, again, out, strict=True):
        [(alone, alone_steps, _)] = problem.train(net, [one], theta)
        assert steps == alone_steps
        assert (alone == found).all()
    assert problem.train(net, []) == []
    with pytest.raises(ValueError, match="one for each device"):
        problem.train(net, devices, thetas[:2])
    with pytest.raises(ValueError, match="theta"):
        problem.train(net, devices, [*thetas[:2], thetas[2][1:]])


@pytest.mark.parametrize("simd", LEVELS)
def test_evaluation(simd):
    problem = Problem(SMALL, 150)
    net = make(SMALL, simd)
    args = (problem.theta, *problem.data, problem.mean, problem.std)
    found = net.evaluate(*args, [2, 0, 1], threads=3)
    assert found == net.evaluate(*args, [2, 0, 1], threads=1)
    assert found[1] == net.evaluate(*args, 0)
    theta = torch.from_numpy(problem.theta)
    for w, (correct, loss) in zip([2, 0, 1], found, strict=True):
        out = logits(SMALL, theta, problem.x, w)
        assert correct == int((out.argmax(1) == problem.y).sum())
        assert loss == pytest.approx(
            float(functional.cross_entropy(out, problem.y, reduction="sum")), rel=1e-5
        )
    part = np.array([5, 5, 149])
    out = logits(SMALL, theta, problem.x[part], 2)
    assert net.evaluate(*args, 2, index=part)[1] == pytest.approx(
        float(functional.cross_entropy(out, problem.y[part], reduction="sum")), rel=1e-5
    )
    assert net.evaluate(*args, [1], index=np.array([], np.int64)) == [(0, 0.0)]


def test_levels_agree():
    problem = Problem(PAPER, 9)
    found = [problem.gradient(make(PAPER, level), np.arange(9))[0] for level in LEVELS]
    for gradient in found[1:]:
        assert_gradient(gradient, found[0])


def test_operation_counts():
    net = make(PAPER)
    full, half = 3936, 1200
    textbook = 2 * (784 * (3 * (full + half) - 288 - 144) + 3 * 10 * (64 + 32))
    assert net.textbook_flops("sustrain") == textbook
    assert net.textbook_flops("width", 1) == 2 * (784 * (3 * full - 288) + 3 * 640)
    assert net.executed_flops("sustrain") < net.shared_flops("sustrain") < textbook


def test_fma_peak():
    assert _native.fma_peak(1, 0.01) > 0.1


def bad_calls():
    problem = Problem(SMALL, 10)
    good = {
        "theta": problem.theta,
        "m": np.zeros_like(problem.theta),
        "v": np.zeros_like(problem.theta),
        "step": 0,
        "images": problem.images,
        "labels": problem.labels,
        "order": np.arange(10),
        "batch_offsets": np.array([0, 5, 10]),
        "learning_rates": np.full(2, 0.01),
        "visits": np.ones((2, 3), np.uint8),
        "mean": problem.mean,
        "std": problem.std,
        "algorithm": "sustrain",
    }
    readonly = np.zeros_like(problem.theta)
    readonly.flags.writeable = False
    shared = np.zeros_like(problem.theta)
    changes = [
        {"theta": problem.theta[:-1]},
        {"theta": problem.theta.astype(np.float64)},
        {"theta": "theta"},
        {"m": readonly},
        {"v": np.zeros(3, np.float32)},
        {"m": shared, "v": shared},
        {"step": -1},
        {"images": problem.images.astype(np.int32)},
        {"images": problem.images[:, :, ::-1]},
        {"images": problem.images[:, 1:]},
        {"labels": problem.labels[:-1]},
        {"labels": np.full(10, 5)},
        {"labels": np.full(10, -1)},
        {"labels": problem.labels.astype(np.float32)},
        {"order": np.array([0, 10])},
        {"order": np.array([-1] * 10)},
        {"order": np.arange(9)},
        {"order": np.arange(10.0)},
        {"batch_offsets": np.array([0, 5, 11])},
        {"batch_offsets": np.array([-1, 5, 10])},
        {"batch_offsets": np.array([0, 5, 5])},
        {"batch_offsets": np.array([0, 10])},
        {"visits": np.zeros((2, 3), np.uint8)},
        {"visits": np.array([[0, 1, 0], [0, 0, 0]], np.uint8)},
        {"visits": np.ones((2, 2), np.uint8)},
        {"learning_rates": np.full(2, 0.01, np.float32)},
        {"mean": problem.mean[:0]},
        {"std": np.zeros(1, np.float32)},
        {"algorithm": "other"},
        {"algorithm": "width"},
        {"algorithm": "width", "width_index": 3},
        {"mode": "other"},
        {"mode": "sequential"},
        {"weights": np.ones(2)},
        {"optimiser": "other"},
        {"betas": (1.0, 0.9)},
        {"nesterov": True, "optimiser": "sgd"},
    ]
    return [{**good, **change} for change in changes]


@pytest.mark.parametrize("arguments", bad_calls())
def test_bad_arguments_are_refused(arguments):
    names = ("order", "batch_offsets", "m", "v", "step", "learning_rates", "visits")
    one = tuple(arguments.pop(name) for name in names)
    first = [arguments.pop(name) for name in ("theta", "images", "labels")]
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        make(SMALL).train_cohort(first[0], [one], *first[1:], **arguments)


def test_a_gradient_of_no_width_is_refused():
    with pytest.raises(ValueError, match="at least one width"):
        Problem(SMALL, 4).gradient(make(SMALL), np.arange(4), visits=np.zeros(3, np.uint8))


def test_bad_networks_are_refused():
    for sizes in [
        (0, 5, 5, (4, 4, 4), 3, [(4, 4, 4)]),
        (1, 5, 5, (4, 4, 4), 3, []),
        (1, 5, 5, (4, 4, 4), 3, [(2, 2, 2)]),
        (1, 5, 5, (4, 4, 4), 3, [(4, 5, 4), (4, 4, 4)]),
        (1, 5, 5, (4, 4, 4), 3, [(0, 4, 4), (4, 4, 4)]),
        (1, 5, 1 << 20, (4, 4, 4), 3, [(4, 4, 4)]),
    ]:
        with pytest.raises(ValueError, match=r"\w+ \w+"):
            _native.Network(*sizes)
    with pytest.raises(ValueError, match="simd"):
        _native.Network(1, 5, 5, (4, 4, 4), 3, [(4, 4, 4)], simd="other")


def test_bad_cohorts_and_evaluations_are_refused():
    problem = Problem(SMALL, 10)
    net = make(SMALL)
    [one] = cohort(problem, [5])
    for devices, options in [
        ([one, one], {}),
        ([one[:6]], {}),
        ([(*one[:4], "x", *one[5:])], {}),
        ([one], {"threads": 0}),
    ]:
        with pytest.raises(ValueError, match=r"\w+ \w+"):
            problem.train(net, devices, **options)
    args = (problem.theta, *problem.data, problem.mean, problem.std)
    for options in [
        {"width_index": 3},
        {"width_index": [0, -1]},
        {"width_index": "x"},
        {"width_index": 0, "threads": 0},
        {"width_index": 0, "index": np.array([10])},
    ]:
        with pytest.raises(ValueError, match=r"\w+ \w+"):
            net.evaluate(*args, **options)
