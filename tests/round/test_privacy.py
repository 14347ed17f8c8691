"""Differential privacy: clipping, the amount of noise, and the reported epsilon."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import slimfl
from slimfl import experiment as config
from slimfl.data import synthetic
from slimfl.engines import Missing, Update
from slimfl.errors import RequestError, RunError
from slimfl.experiment import DataSection, Experiment, PrivacySection, build
from slimfl.methods import RunningMean, Work
from slimfl.nn import Segments
from slimfl.radio import Signal
from slimfl.round import Simulation
from slimfl.round.privacy import Clip, Privacy, gaussian_delta, gaussian_epsilon
from slimfl.round.uploads import Upload
from tests import asking

DATASET = synthetic(train=300, test=100, size=6)
SIZES = (3000, 9000)
SEGMENTS = Segments(np.repeat([0, 1], SIZES).astype(np.uint8), (0.5, 1.0))
LAST = np.linspace(-1, 1, sum(SIZES)).astype(np.float32)


def privacy(clip_norm=2.0, noise_multiplier=0.0, noise="seeded", devices=5):
    section = PrivacySection(clip_norm=clip_norm, noise_multiplier=noise_multiplier, noise=noise)
    return Privacy(section, devices, seed=3)


def positions(delivered):
    return np.concatenate([SEGMENTS.positions[s] for s in delivered])


def sums(guard, devices, last=LAST, round=1):
    """The sums of a round behind the clip, before noise.

    Each device is (id, parameters, segments delivered); parameters are None if nothing usable came.
    """
    running, plan = RunningMean(last), SimpleNamespace(round=round, model=last, receptions=None)
    for number, parameters, delivered in devices:
        messages = tuple((segment,) for segment in delivered)
        upload = Upload(0, number, Work((0,), messages), Signal(messages, None))
        if parameters is not None:
            upload.parameters, upload.where = parameters, positions(delivered)
        clip = Clip(guard.section.clip_norm, lambda which, order: positions(which))
        for stage in (clip, guard):
            stage.decode_all([upload], plan)
        running.add(upload.parameters, upload.where, upload.weight)
    running.plan = plan
    return running


def noisy(guard, devices, round=1):
    """The model of a round, with noise."""
    running = sums(guard, devices, round=round)
    guard.finish(running, running.plan)
    return running.result()


def segment_weights(running):
    """The weight of each segment, the same for all its parameters."""
    found = [np.unique(running.weights()[positions([s])]) for s in range(len(SIZES))]
    assert all(len(each) == 1 for each in found)
    return [float(each[0]) for each in found]


def update(scale, seed=0):
    change = np.random.default_rng(seed).normal(size=len(LAST))
    return (LAST + scale * change / np.linalg.norm(change)).astype(np.float32)


@pytest.mark.parametrize("mu", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-5])
def test_epsilon_is_where_the_two_gaussians_differ_by_delta(mu, delta):
    """The definition, integrated: delta is the mass by which N(mu, 1) exceeds e^eps N(0, 1)."""
    epsilon = gaussian_epsilon(mu, delta)
    begins = epsilon / mu + mu / 2  # from where on the density is e^eps times the other

    def excess(x):
        return norm.pdf(x, mu) - math.exp(epsilon) * norm.pdf(x)

    found, _ = quad(excess, begins, begins + 40, epsabs=delta * 1e-9, limit=200)
    assert found == pytest.approx(delta, rel=1e-6)


def test_epsilon_grows_with_the_rounds_and_does_not_overflow():
    values = [gaussian_epsilon(math.sqrt(m) / 1.1, 1e-5) for m in (1, 10, 1000, 100_000)]
    assert values == sorted(values)
    assert math.isfinite(values[-1])
    assert 0 < gaussian_delta(800.0, 40.0) < 1


def test_what_arrives_is_shortened_to_the_norm_and_nothing_else_enters():
    guard = privacy(clip_norm=2.0)
    for delivered, whole in (((0,), SIZES[0]), ((0, 1), len(LAST))):
        model = sums(guard, [(0, update(50.0), delivered)]).result()
        change = model.astype(np.float64) - LAST
        assert np.linalg.norm(change) == pytest.approx(2.0, rel=1e-5)
        assert not change[whole:].any()
        direction = (update(50.0) - LAST)[:whole]
        cosine = direction @ change[:whole] / np.linalg.norm(direction) / 2.0
        assert cosine == pytest.approx(1.0, abs=1e-5)


def test_a_short_update_stays_as_it_is():
    model = sums(privacy(clip_norm=2.0), [(0, update(1.9), (0, 1))]).result()
    np.testing.assert_allclose(model, update(1.9), atol=1e-6)


def test_one_device_moves_the_sum_by_the_norm_at_most():
    """The sensitivity behind epsilon: with a device's contribution replaced by nothing."""
    others = [
        (device, update(30.0 + device, seed=device), delivered)
        for device, delivered in ((0, (0,)), (1, (0, 1)), (2, (0, 1)))
    ]
    with_it, without = (
        sums(privacy(clip_norm=2.0), [*others, (3, parameters, (0, 1))])
        for parameters in (update(1e6, seed=9), LAST)
    )
    assert segment_weights(with_it) == segment_weights(without) == [4, 3]
    assert np.linalg.norm(with_it.sums - without.sums) == pytest.approx(2.0, rel=1e-4)


def test_the_noise_of_a_segment_follows_from_how_many_delivered_it():
    guard = privacy(clip_norm=2.0, noise_multiplier=1.5)
    model = noisy(guard, [(0, LAST, (0,)), (1, LAST, (0,)), (2, LAST, (0, 1))], round=4)
    noise = model.astype(np.float64) - LAST
    for segment, count in ((0, 3), (1, 1)):
        values = noise[SEGMENTS.positions[segment]]
        expected = 1.5 * 2.0 / count
        deviation_of_estimate = expected / math.sqrt(2 * len(values))
        assert abs(values.std() - expected) < 5 * deviation_of_estimate
        assert abs(values.mean()) < 5 * expected / math.sqrt(len(values))


def test_a_segment_that_nobody_delivered_gets_no_noise():
    model = noisy(privacy(noise_multiplier=1.0), [(0, update(1.0), (0,))])
    np.testing.assert_array_equal(model[SEGMENTS.positions[1]], LAST[SEGMENTS.positions[1]])
    assert (model[SEGMENTS.positions[0]] != LAST[SEGMENTS.positions[0]]).any()


def test_a_bad_update_is_refused_but_counts_as_one_that_changes_nothing():
    running = sums(privacy(), [(0, None, (0, 1))])
    assert segment_weights(running) == [1, 1]
    np.testing.assert_array_equal(running.result(), LAST)
    sim = private_simulation(noise_multiplier=0.0)
    start, decoded = sim.global_model.copy(), sim.setting.channel.receive
    sim.setting.engine = Fake(
        lambda start, device: update_of(
            device, np.full_like(start, np.nan) if device == 4 else start
        )
    )
    plan = sim.plan()
    assert decoded(plan.links, plan.signals, None).decoded[4] > 0, "else it is not looked at"
    line = sim.step()
    assert line["refused"] == [4]
    assert sim.setting.privacy.heard[4] == 1
    np.testing.assert_array_equal(sim.global_model, start)


def test_seeded_noise_repeats_and_secret_noise_does_not():
    def model(noise):
        return noisy(privacy(noise_multiplier=1.0, noise=noise), [(0, LAST, (0, 1))], round=7)

    np.testing.assert_array_equal(model("seeded"), model("seeded"))
    assert (model("secret") != model("secret")).mean() > 0.99
    assert (model("secret") != model("seeded")).mean() > 0.99


SETTINGS = {
    "dataset": DATASET,
    "rounds": 6,
    "training__steps": 2,
    "federation__participation": 0.5,
    "privacy__clip_norm": 0.5,
    "privacy__noise_multiplier": 1.2,
    "privacy__noise": "seeded",
}


def heard_most(lines):
    heard = np.zeros(10, int)
    for line in lines:
        for device, decoded in zip(line["devices"], line["decoded"], strict=True):
            heard[device] += decoded > 0
    return heard.max()


def test_a_run_tells_the_epsilon_of_the_device_heard_most():
    lines = asking.run(**SETTINGS).lines
    for count in (1, 3, 6):
        expected = gaussian_epsilon(math.sqrt(heard_most(lines[:count])) / 1.2, 1e-5)
        assert lines[count - 1].privacy.as_json() == {"epsilon": expected, "delta": 1e-5}
    assert all(line["training_loss"] == {} for line in lines)


def test_without_noise_there_is_no_epsilon_and_without_a_norm_no_privacy():
    clipped = asking.run(**{**SETTINGS, "privacy__noise_multiplier": 0.0})
    assert clipped.lines[-1]["privacy"]["epsilon"] is None
    plain = {k: v for k, v in SETTINGS.items() if not k.startswith("privacy")}
    assert "privacy" not in asking.run(**plain).lines[-1]


def test_wrong_requests_say_what_to_change():
    with pytest.raises(RequestError, match=r"privacy\.clip_norm"):
        build({"privacy": {"noise_multiplier": 1.0}})
    with pytest.raises(RequestError, match=r"federation\.average"):
        build({"privacy": {"clip_norm": 1.0}, "federation": {"average": "samples"}})


def test_clipping_alone_with_a_large_norm_changes_nothing():
    settings = {k: v for k, v in SETTINGS.items() if not k.startswith("privacy")}
    plain = asking.run(engine="torch", **settings)
    clipped = asking.run(engine="torch", privacy__clip_norm=1e6, **settings)
    np.testing.assert_allclose(plain.parameters, clipped.parameters, atol=1e-6)


@pytest.mark.parametrize("clip_norm", [2.0, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 300.0, 1e6])
def test_rounding_does_not_lengthen_a_clipped_change(clip_norm, scale):
    """What enters the sum, and the model of one device without noise, stay within the norm."""
    random = np.random.default_rng(7)
    for _ in range(5):
        last = (scale * random.normal(size=len(LAST))).astype(np.float32)
        trained = (last + scale * random.normal(size=len(LAST))).astype(np.float32)
        running = sums(privacy(clip_norm=clip_norm), [(0, trained, (0, 1))], last)
        assert np.linalg.norm(running.sums - last.astype(np.float64)) <= clip_norm
        change = running.result().astype(np.float64) - last
        assert np.linalg.norm(change) <= clip_norm


class Fake:
    """An engine whose devices answer with what a test says."""

    name, threads = "fake", 1

    def __init__(self, answer):
        self.answer = answer

    def train(self, round, start, tasks):
        for task in tasks:
            yield self.answer(start, task.device)

    def evaluate(self, parameters, widths):
        return []

    def device_states(self):
        return {}


def update_of(device, parameters, gain=None):
    return Update(device, parameters, 10, np.full(2, np.nan), np.zeros(2, np.int64), gain=gain)


def private_simulation(gains="drawn", **changes):
    values = {
        "seed": 2,
        "rounds": 5,
        "engine": "flower" if gains == "measured" else "torch",
        "federation": {"devices": 6, "evaluate_every": 5},
        "radio": {"gains": gains},
        "privacy": {"clip_norm": 0.5, "noise_multiplier": 1.2, "noise": "seeded", **changes},
    }
    return Simulation(build(values), dataset=DATASET)


def trained(start, device):
    change = np.random.default_rng(device).normal(size=len(start)) / 100
    return (start + change).astype(np.float32)


#: What a device may do instead of answering, as far as its data can bring it to.
INSTEAD = {
    "contributes nothing": lambda start, device: update_of(device, start, gain=100.0),
    "is late": lambda start, device: Missing(device, "it did not answer in time"),
    "sends NaN": lambda start, device: update_of(device, np.full_like(start, np.nan), 100.0),
    "sends another shape": lambda start, device: update_of(device, start[:-1], 100.0),
}


@pytest.mark.parametrize("gains", ["drawn", "measured"])
@pytest.mark.parametrize("instead", list(INSTEAD))
def test_a_device_that_does_not_answer_changes_neither_divisor_nor_noise(gains, instead):
    """Under one seed all neighbours get the same noise, so their models are the same bits."""

    def models(silent, does):
        sim = private_simulation(gains)
        found = []
        sim.setting.engine = Fake(
            lambda start, device: (
                INSTEAD[does](start, device)
                if device == silent
                else update_of(device, trained(start, device), 100.0)
            )
        )
        for _ in range(4):
            line = sim.step()
            found.append((sim.global_model.copy(), line["privacy"]))
        return found

    for silent in (0, 3):
        expected = models(silent, "contributes nothing")
        for (model, spent), (same, also) in zip(expected, models(silent, instead), strict=True):
            np.testing.assert_array_equal(model, same)
            assert spent == also


def test_the_divisor_with_measured_gains_is_the_number_of_devices_asked():
    """A device that reports a bad channel, or none, takes its share and no more out of the sum."""
    sim = private_simulation("measured", noise_multiplier=0.0)
    start = sim.global_model.copy()
    gains = {0: 100.0, 1: 0.0, 2: None}
    sim.setting.engine = Fake(
        lambda start, device: update_of(device, trained(start, device), gains.get(device))
    )
    sim.step()
    change = trained(start, 0).astype(np.float64) - start
    change *= min(1.0, 0.5 / np.linalg.norm(change))
    np.testing.assert_allclose(sim.global_model, start + change / 6, atol=1e-6)


def test_a_round_that_is_given_up_costs_nothing():
    sim = private_simulation()

    def fails(start, device):
        if device == 5:
            raise RunError("no quorum")
        return update_of(device, trained(start, device))

    sim.setting.engine = Fake(fails)
    with pytest.raises(RunError):
        sim.step()
    assert sim.setting.privacy.heard.sum() == 0
    sim.setting.engine = Fake(lambda start, device: update_of(device, trained(start, device)))
    line = sim.step()
    assert sim.setting.privacy.heard.max() == 1
    assert line["privacy"]["epsilon"] == gaussian_epsilon(1 / 1.2, 1e-5)


def test_secret_noise_comes_from_the_system(monkeypatch):
    """And from no generator of NumPy's."""
    drawn = []

    def known(count):
        drawn.append(count)
        return np.full(count, 0.25)

    monkeypatch.setattr("slimfl.round.privacy.secret_gaussian", known)
    monkeypatch.setattr(np.random, "default_rng", None)
    guard = privacy(clip_norm=2.0, noise_multiplier=1.5, noise="secret")
    noise = noisy(guard, [(0, LAST, (0,)), (1, LAST, (0, 1))]).astype(np.float64) - LAST
    assert sum(drawn) == len(LAST)
    for segment, count in ((0, 2), (1, 1)):
        values = noise[SEGMENTS.positions[segment]]
        np.testing.assert_allclose(values, 0.25 * 1.5 * 2.0 / count, atol=1e-6)


NOISY = {"clip_norm": 1.0, "noise_multiplier": 1.0}


def test_a_private_run_normalises_by_constants_unless_asked():
    assert build({"privacy": NOISY}).data.normalise == "centred"
    assert build({"privacy": NOISY, "data": {"alpha": 0.5}}).data.normalise == "centred"
    for asked in ("standard", "plain", "centred"):
        data = {"normalise": asked}
        assert build({"privacy": NOISY, "data": data}).data.normalise == asked
    assert build({"privacy": {"clip_norm": 1.0}}).data.normalise == "standard"
    assert build({}).data.normalise == "standard"
    objects = Experiment(privacy=PrivacySection(**NOISY), data=DataSection(alpha=0.5))
    assert (objects.data.normalise, objects.data.alpha) == ("centred", 0.5)
    assert 'normalise = "centred"' in config.dump(objects)


def test_the_constants_depend_on_no_data():
    dark, bright = synthetic(train=50, test=10), synthetic(train=50, test=10)
    bright.train.images[:] = 255
    for one in (dark, bright):
        mean, deviation = one.normalisation("centred")
        assert (mean.tolist(), deviation.tolist()) == ([0.5], [0.5])
        assert ((np.array([0, 1]) - mean) / deviation).tolist() == [-1, 1]


def test_one_device_s_images_do_not_reach_the_others_through_the_normalisation():
    """A device that contributes nothing leaves no trace in the model, whatever it holds."""
    models = []
    for blank in (False, True):
        dataset = synthetic(train=300, test=100, size=6)
        sim = Simulation(
            build({"seed": 2, "rounds": 1, "engine": "torch", "training": {"steps": 2},
                   "federation": {"devices": 3},
                   "privacy": {**NOISY, "noise": "seeded"}}),
            dataset=dataset,
        )  # fmt: skip
        if blank:
            dataset.train.images[sim.setting.partition.of(1)] = 255
            sim = Simulation(sim.experiment, dataset=dataset)
        train = sim.engine.train

        def without(round, start, tasks, train=train):
            for outcome in train(round, start, tasks):
                yield Missing(1, "silent") if outcome.device == 1 else outcome

        sim.engine.train = without
        sim.step()
        models.append(sim.global_model)
    np.testing.assert_array_equal(*models)


def test_standardising_in_private_is_said_in_the_log(tmp_path):
    private = {**SETTINGS, "rounds": 1}
    asking.run(out=tmp_path / "asked", data__normalise="standard", **private)
    assert "epsilon does not cover" in (tmp_path / "asked/run.log").read_text()
    asking.run(out=tmp_path / "default", **private)
    assert not (tmp_path / "default/run.log").exists()
    assert 'normalise = "centred"' in (tmp_path / "default/experiment.toml").read_text()


def test_a_run_that_repeats_a_round_with_secret_noise_pays_twice(tmp_path, monkeypatch):
    """The checkpoint of round 3 is lost after its result was seen."""
    settings = {**SETTINGS, "privacy__noise": "secret", "federation__participation": 1.0}
    step = Simulation.step

    def interrupted(self):
        if self.round == 3:
            raise KeyboardInterrupt
        return step(self)

    with monkeypatch.context() as patch:
        patch.setattr(Simulation, "step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            asking.run(out=tmp_path / "run", **settings)
    seen = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").open()]
    max((tmp_path / "run/checkpoints").glob("*.safetensors")).unlink()
    lines = slimfl.resume(tmp_path / "run", dataset=DATASET).lines
    assert len(lines) == 6

    heard = np.zeros(10, int)
    for line in [*lines, seen[2]]:
        for device, decoded in zip(line["devices"], line["decoded"], strict=True):
            heard[device] += decoded > 0
    expected = gaussian_epsilon(math.sqrt(heard.max()) / 1.2, 1e-5)
    assert lines[-1]["privacy"]["epsilon"] == expected
    assert heard.max() > heard_most(lines)
