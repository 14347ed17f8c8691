"""The convex problem against its definitions, and theorem 1 against the convex problem."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from lab.convex.problem import aggregation_weights, measure_gap, ridge_problem
from lab.convex.study import (
    STUDY_CHANNELS,
    against_bounds,
    link,
    lowest,
    rounds_to_show,
    study,
)
from lab.convex.variance import deliveries, exact_variance, sampled_variance
from slimfl.errors import RequestError
from slimfl.methods import RunningMean
from slimfl.radio import Superposition, optimal_split_numeric
from slimfl.radio import bound as theory
from slimfl.results.statistics import fluctuation, selection_fluctuation
from slimfl.rng import generator

POOR, EXTREME = STUDY_CHANNELS["poor"], STUDY_CHANNELS["extreme"]


@pytest.fixture(scope="module")
def uneven():
    """Three widths, unequal weights, devices that differ."""
    return ridge_problem((0.2, 0.3, 0.5), devices=4, non_iid=0.7, dimension=7)


def local_loss(problem, device, model):
    """w_i F^k(theta . Xi_i) summed over widths, from the samples."""
    total = 0.0
    for weight, width in zip(problem.weights, problem.segments.widths, strict=True):
        masked = np.where(problem.segments.mask(width), model, 0)
        errors = problem.features[device] @ masked - problem.targets[device]
        total += weight * ((errors**2).mean() / 2 + problem.ridge / 2 * masked @ masked)
    return total


def global_loss(problem, model):
    return np.mean([local_loss(problem, k, model) for k in range(problem.devices)])


def test_widths_are_the_leading_coordinates(uneven):
    assert uneven.segments.segment_of.tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert np.bincount(ridge_problem((0.25,) * 4).segments.segment_of).tolist() == [4] * 4
    with pytest.raises(RequestError, match="use fewer"):
        ridge_problem((0.25,) * 4, dimension=3)


def test_local_gradients_by_central_differences(uneven):
    model, step = np.linspace(-1, 2, 7), 1e-5
    for device, gradient in enumerate(uneven.gradients(model[None])[0]):
        for i, direction in enumerate(np.eye(7) * step):
            rise = local_loss(uneven, device, model + direction)
            rise -= local_loss(uneven, device, model - direction)
            assert gradient[i] == pytest.approx(rise / (2 * step), abs=1e-8)


def test_the_optimum_is_the_one_a_general_minimiser_finds(uneven):
    found = minimize(lambda model: global_loss(uneven, model), np.zeros(7), tol=1e-12)
    np.testing.assert_allclose(uneven.optimum, found.x, atol=1e-5)
    np.testing.assert_allclose(uneven.gradients(uneven.optimum[None])[0].mean(0), 0, atol=1e-13)
    model = np.linspace(-1, 2, 7)
    expected = global_loss(uneven, model) - global_loss(uneven, uneven.optimum)
    assert uneven.gap(model) == pytest.approx(expected)
    assert uneven.initial_distance_squared == pytest.approx((found.x**2).sum(), rel=1e-4)


def test_l_and_mu_are_the_extreme_curvatures_of_f_and_of_every_local_loss(uneven):
    """Hessians by second differences, exact up to rounding as all losses are quadratic."""

    def plain_local(device, model):
        errors = uneven.features[device] @ model - uneven.targets[device]
        return (errors**2).mean() / 2 + uneven.ridge / 2 * model @ model

    losses = [lambda m: global_loss(uneven, m)]
    losses += [lambda m, k=k: plain_local(k, m) for k in range(uneven.devices)]
    eigenvalues = []
    for loss in losses:
        values = [[loss(a + b) - loss(a) - loss(b) for a in np.eye(7)] for b in np.eye(7)]
        eigenvalues.append(np.linalg.eigvalsh(np.array(values) + loss(np.zeros(7))))
    assert uneven.strong_convexity == pytest.approx(np.min(eigenvalues))
    assert uneven.smoothness == pytest.approx(np.max(eigenvalues))


def test_masks_take_curvature_away():
    """F^k may be mu-strongly convex while F is not: the last segment counts w_S times."""
    problem = ridge_problem((0.5, 0.5))
    assert np.linalg.eigvalsh(problem.hessian).min() == problem.strong_convexity
    assert np.linalg.eigvalsh(problem.local_hessians).min() > problem.strong_convexity


@pytest.mark.parametrize("shared", [True, False])
def test_noise_is_the_superposition_of_the_widths_own(uneven, shared):
    """Sum the widths' masked noises draw by draw; sigma_k^2 is that of one width's gradient."""
    problem = ridge_problem(uneven.weights, 4, dimension=7, delta=3.0, shared_noise=shared)
    assert problem.delta == pytest.approx(3.0)
    draws, random = 40_000, np.random.default_rng(1)
    for device, variance in enumerate(problem.noise_variances):
        deviation = np.sqrt(variance / 7)
        each = random.normal(0, deviation, (draws, 1 if shared else 3, 7))
        assert (each[:, 0] ** 2).sum(1).mean() == pytest.approx(variance, rel=0.02)
        total = (each * problem.masks * np.array(problem.weights)[:, None]).sum(1)
        np.testing.assert_allclose(total.std(0), problem.noise_deviations[device], rtol=0.02)


@pytest.mark.parametrize("noise_dbm", [POOR, EXTREME])
def test_training_equals_a_loop_over_devices_with_the_servers_average(uneven, noise_dbm):
    channel, coding = link(noise_dbm, 3)
    repetitions, rounds, seed = 3, 30, 5
    measured = measure_gap(uneven, channel, coding, [1, rounds // 2, rounds], repetitions, seed)
    thresholds = coding.thresholds(channel.noise_to_power)
    L, mu = uneven.smoothness, uneven.strong_convexity
    models = np.zeros((repetitions, 7), np.float64)
    expected = []
    for t in range(1, rounds + 1):
        if t in (1, rounds // 2, rounds):
            expected.append([global_loss(uneven, m) for m in models])
        eta = 2 / (mu * t + 2 * L - mu)
        gains = channel.gains(seed, t, repetitions * 4)
        noise = generator(seed, "convex-noise", t).standard_normal((repetitions, 4, 7))
        for r in range(repetitions):
            mean = RunningMean(models[r].astype(np.float32))
            for k in range(4):
                g = uneven.gradients(models[r][None])[0, k]
                g = g + uneven.noise_deviations[k] * noise[r, k]
                delivered = np.flatnonzero(gains[r * 4 + k] >= thresholds)
                for segment in delivered:
                    where = uneven.segments.positions[segment]
                    mean.add((models[r] - eta * g).astype(np.float32), where)
            models[r] = mean.result()
    expected = np.array(expected).T - global_loss(uneven, uneven.optimum)
    np.testing.assert_allclose(measured, expected, rtol=1e-3, atol=1e-5)  # the server's float32


def test_repetitions_do_not_depend_on_each_other_and_are_repeatable(uneven):
    radio = link(POOR, 3)
    few = measure_gap(uneven, *radio, [20], repetitions=3, seed=2)
    many = measure_gap(uneven, *radio, [5, 20], repetitions=8, seed=2)
    np.testing.assert_allclose(few[:, 0], many[:3, 1], rtol=1e-9)
    assert len(np.unique(many[:, 1])) == 8
    assert not np.isclose(measure_gap(uneven, *radio, [20], 3, seed=3), few).any()


def test_the_three_readings_of_the_average():
    decoded = np.array([[0, 1, 2], [0, 0, 1]], np.uint8)
    p = np.array([0.8, 0.5])
    delivered = aggregation_weights(decoded, p, "delivered")
    np.testing.assert_allclose(delivered[0].T, [[0, 0.5, 0.5], [0, 0, 1]])
    np.testing.assert_allclose(delivered[1].T, [[0, 0, 1], [0, 0, 0]])
    for reading in ("unbiased", "literal"):
        shares = aggregation_weights(decoded, p, reading)
        np.testing.assert_allclose(shares[0].T, [[0, 1 / 2.4, 1 / 2.4], [0, 0, 1 / 1.5]])
    # equation (6) as printed multiplies the model itself by m / (K p)
    problem = ridge_problem((0.5, 0.5), delta=0.0, at_optimum=True)
    radio = link(POOR, 2)
    assert measure_gap(problem, *radio, [50], 20).max() < 1e-20
    assert measure_gap(problem, *radio, [50], 20, aggregation="unbiased").max() < 1e-20
    assert measure_gap(problem, *radio, [50], 20, aggregation="literal").min() > 1e-4


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 1.0), st.integers(1, 8))
def test_moments_of_deliveries_by_enumeration(p, devices):
    moments = deliveries([p], devices)
    inverse, left_out = 0.0, 0.0
    for outcome in range(2**devices):
        m = outcome.bit_count()
        chance = p**m * (1 - p) ** (devices - m)
        if m:
            inverse += chance / m
            left_out += chance * (devices - m) / (m * max(1, devices - 1))
        else:
            assert moments.nobody[0] == pytest.approx(chance)
    assert moments.inverse[0] == pytest.approx(inverse)
    assert moments.left_out[0] == pytest.approx(left_out)


@pytest.mark.parametrize("reading", ["delivered", "unbiased"])
@pytest.mark.parametrize("noise_dbm", [POOR, EXTREME])
def test_the_closed_form_of_the_variance_is_what_is_measured(uneven, noise_dbm, reading):
    """Away from the optimum, so that no part vanishes; four deviations of 40 batches."""
    radio = link(noise_dbm, 3)
    model = np.full(7, 0.3)
    exact = exact_variance(uneven, model, radio[0].decoding_probabilities(radio[1]), reading)
    batches = [sampled_variance(uneven, model, *radio, 500, seed, reading) for seed in range(40)]
    for part in ("noise", "selection", "missing"):
        values = np.array([getattr(batch, part) for batch in batches])
        error = values.std(0, ddof=1) / np.sqrt(len(values))
        # an event of probability p is missed altogether in 20,000 draws if p is below 1e-3
        slack = 4 * error + 1e-3 * getattr(exact, part) + (1e-3 if part == "missing" else 0)
        assert (np.abs(values.mean(0) - getattr(exact, part)) <= slack).all(), part


def test_without_masks_the_sharper_constant_is_exact():
    """One width: no masks and no Cauchy-Schwarz, so with K p deliveries nothing is lost."""
    problem = ridge_problem((1.0,), delta=2.0)
    p = np.array([0.7])
    noise = exact_variance(problem, problem.optimum, p, "unbiased").noise.sum()
    assert noise == pytest.approx(theory.sharp_constant(2.0, p, (1.0,), 10))
    assert noise == pytest.approx(theory.tight_constant(2.0, p, (1.0,), 10))


fractions = st.lists(st.floats(0.02, 1), min_size=3, max_size=3)


@settings(max_examples=50, deadline=None)
@given(fractions, fractions, fractions, st.booleans())
def test_the_constants_are_ordered_and_cover_any_noise(raw_weights, raw_shares, raw_p, shared):
    weights, shares = (np.array(raw) / sum(raw) for raw in (raw_weights, raw_shares))
    p = np.sort(raw_p)[::-1]
    problem = ridge_problem(weights, noise_shares=shares, shared_noise=shared)
    variance = exact_variance(problem, problem.optimum, p, "unbiased").noise.sum()
    tight = theory.tight_constant(1.0, p, weights, 10)
    sharp = theory.sharp_constant(1.0, p, weights, 10)
    paper = theory.paper_constant(1.0, p, weights)
    assert variance <= tight * (1 + 1e-9) <= sharp * (1 + 1e-9) <= paper * (1 + 1e-9)


@pytest.mark.parametrize("segment", [0, 1])
def test_the_tight_constant_is_reached(segment):
    p = np.array([0.9, 0.1])
    shares = np.eye(2)[segment]
    problem = ridge_problem((0.5, 0.5), noise_shares=shares)
    variance = exact_variance(problem, problem.optimum, p, "unbiased").noise.sum()
    assert variance == pytest.approx([1 / 9, 0.25 / 1][segment])
    assert theory.tight_constant(1.0, p, (0.5, 0.5), 10) == pytest.approx(0.25)


def test_the_gap_of_iid_devices_follows_the_exact_recursion():
    """Quadratic loss, constant noise: mean and covariance of theta_t obey a linear recursion."""
    problem = ridge_problem((0.5, 0.5))
    channel, coding = link(POOR, 2)
    p = channel.decoding_probabilities(coding)
    per_segment = exact_variance(problem, problem.optimum, p).noise / problem.segments.sizes
    noise = np.diag(per_segment[problem.segments.segment_of])
    mean, covariance, gaps = -problem.optimum, np.zeros((16, 16)), []
    L, mu = problem.smoothness, problem.strong_convexity
    for t in range(1, 301):
        gaps.append((np.trace(problem.hessian @ covariance) + mean @ problem.hessian @ mean) / 2)
        eta = 2 / (mu * t + 2 * L - mu)
        shrink = np.eye(16) - eta * problem.hessian
        mean, covariance = shrink @ mean, shrink @ covariance @ shrink.T + eta**2 * noise
    shown = [2, 10, 50, 300]
    measured = measure_gap(problem, channel, coding, shown, repetitions=400)
    error = measured.std(0, ddof=1) / np.sqrt(400)
    assert (np.abs(measured.mean(0) - np.array(gaps)[np.array(shown) - 1]) < 4 * error).all()


@pytest.mark.parametrize("segments", [2, 4])
@pytest.mark.parametrize("noise_dbm", STUDY_CHANNELS.values(), ids=STUDY_CHANNELS)
@pytest.mark.parametrize("non_iid", [0.0, 1.0])
def test_the_measured_gap_stays_below_both_bounds(segments, noise_dbm, non_iid):
    problem = ridge_problem(theory.optimal_weights(segments), non_iid=non_iid)
    told = against_bounds(problem, link(noise_dbm, segments), rounds_to_show(300), 60)
    upper = told["measured"] + 4 * told["standard_error"]
    assert (upper <= told["bound_sharp"]).all()
    assert (told["bound_sharp"] <= told["bound_paper"]).all()
    assert told["measured"][-1] < told["measured"][0] / 4


def test_the_bound_breaks_where_the_last_segment_hardly_arrives():
    """Full local gradients, so B = 0; yet nobody delivers in 97 of 100 rounds."""
    problem = ridge_problem((0.5, 0.5), delta=0.0)
    told = against_bounds(problem, link(-29.0, 2), [1, 1000], 60)
    assert told["measured"][-1] - 4 * told["standard_error"][-1] > told["bound_paper"][-1]


def test_the_bound_breaks_where_devices_differ_and_little_else_disturbs():
    problem = ridge_problem((0.5, 0.5), non_iid=1.0, delta=1e-4, at_optimum=True)
    told = against_bounds(problem, link(POOR, 2), [2, 200], 60)
    assert told["measured"][-1] - 4 * told["standard_error"][-1] > told["bound_paper"][-1]


def test_proposition_1_is_the_measured_optimum_where_noise_is_level():
    channel, coding = link(POOR, 2)
    rates, grid = coding.spectral_efficiencies, np.arange(0.70, 0.851, 0.01)

    def measured(shares):
        problem = ridge_problem((0.5, 0.5), noise_shares=shares)
        told = [
            sampled_variance(
                problem, problem.optimum, channel, Superposition(rates, (x, 1 - x)), 4000
            )
            for x in grid.tolist()
        ]
        return lowest(grid, [each.noise.sum() for each in told])

    proposition = optimal_split_numeric(rates, channel.noise_to_power)[0]
    assert measured((0.2, 0.8)) == pytest.approx(proposition, abs=0.015)

    # isotropic: 1/p_1 counts four times as much as 1/p_2, because both widths train segment 1
    def weighted(share):
        split = Superposition(rates, (share, 1 - share))
        return (np.array([4, 1]) / channel.decoding_probabilities(split)).sum()

    expected = minimize_scalar(weighted, bounds=(0.7, 0.9), method="bounded").x
    assert expected > proposition + 0.03
    assert measured((0.5, 0.5)) == pytest.approx(expected, abs=0.015)


def test_proposition_2_is_the_optimum_of_the_bound_and_not_of_the_variance():
    """Worked out by hand for p = 1, K = 10, isotropic noise."""
    grid = np.linspace(0.05, 0.95, 19)
    p = np.ones(2)

    def best(shared, segments):
        values = []
        for first in grid.tolist():
            problem = ridge_problem((first, 1 - first), shared_noise=shared)
            values.append(exact_variance(problem, problem.optimum, p).noise[segments].sum())
        return lowest(grid, values)

    assert best(True, slice(None)) == 0.95  # 1 + w_2^2, least where w_2 is
    assert best(False, slice(None)) == pytest.approx(2 / 3)  # w_1^2 + 2 w_2^2
    assert best(False, slice(1)) == pytest.approx(1 / 2)  # w_1^2 + w_2^2


def test_selection_grows_with_the_square_of_the_distance_between_devices():
    """Same features, targets moved by x: the spread of the gradients, and the part, go with x^2."""
    parts = []
    for x in (1.0, 3.0):
        problem = ridge_problem((0.5, 0.5))
        shift = x * np.random.default_rng(0).normal(size=problem.targets.shape)
        moved = replace(problem, targets=problem.targets + shift)
        parts.append(exact_variance(moved, moved.optimum, np.array([0.8, 0.6])).selection.sum())
    assert parts[1] / parts[0] == pytest.approx(9)


@pytest.mark.parametrize(("one", "other"), [(0.810, 0.704), (0.810, 0.912), (0.5, 0.8)])
def test_a_model_fluctuates_as_the_selection_of_devices_predicts(one, other):
    """Local training to the devices' own optima, so that each round's model is their mean."""
    problem = ridge_problem((0.5, 0.5), devices=20, non_iid=1.0)
    optima = np.linalg.solve(problem.curvatures, problem.pulls[..., None])[..., 0]
    fluctuations = []
    for p in (one, other):
        arrived = np.random.default_rng(3).random((20_000, 20)) < p
        arrived = arrived[arrived.any(1)]
        models = arrived @ optima / arrived.sum(1, keepdims=True)
        fluctuations.append(np.mean([fluctuation(each) ** 2 for each in models.T]) ** 0.5)
    expected = selection_fluctuation(one, 20) / selection_fluctuation(other, 20)
    assert fluctuations[0] / fluctuations[1] == pytest.approx(expected, rel=0.05)


def test_lowest_finds_a_parabola_and_respects_the_ends():
    x = np.linspace(0, 1, 21)
    assert lowest(x, (x - 0.33) ** 2) == pytest.approx(0.33)
    assert lowest(x, x) == 0
    assert lowest(x, -x) == 1


@pytest.mark.slow
def test_the_study_is_plain_data():
    document = study("smoke")
    assert json.loads(json.dumps(document)) == document
    assert all(row["share_of_paper"] <= 1 for row in document["bounds"])


def test_an_unknown_scale_is_refused():
    with pytest.raises(RequestError, match="smoke, small, paper"):
        study("huge")
