"""The caller's own objects: recorded in the run, which can only be resumed with them."""

import html
import shutil
import tomllib
from dataclasses import dataclass, replace

import numpy as np
import pytest
from torch import nn

import slimfl
from slimfl.data import Dataset, Samples, load, load_section, synthetic
from slimfl.errors import RequestError
from slimfl.experiment import RadioSection, build
from slimfl.methods import Merge, SlimFL, Work
from slimfl.nn import slimmable
from slimfl.radio import OutageChannel, outage_channel
from slimfl.report.pages import plots
from slimfl.report.pages.run_report import write_report
from slimfl.results.groups import group
from slimfl.results.records import find
from slimfl.results.rules import expected_of
from slimfl.results.summary import summaries, summarise
from slimfl.round import RunFolder
from slimfl.round import run as run_simulation
from slimfl.runs import own
from slimfl.runs.sweeps import Job, complete
from tests import asking

SMALL = {
    "rounds": 3,
    "training__steps": 2,
    "training__batch_size": 4,
    "federation__devices": 3,
    "engine": "torch",
    "threads": 1,
}


def network(hidden=4, activation=nn.ReLU, shift=0.0):
    made = slimmable(
        nn.Sequential(
            nn.Conv2d(1, hidden, 3), activation(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(hidden, 10),
        )
    )  # fmt: skip
    for k, one in enumerate(made.parameters()):
        one.data.fill_(0.1 * (k + 1) + shift)
    return made


@dataclass(frozen=True)
class Half:
    """Another fading under the outage model: everything arrives half as strong."""

    inner: OutageChannel
    factor: float = 0.5
    closed_form: bool = False
    needs_payload: bool = False

    def start(self, population, seed):
        return self.inner.start(population, seed)

    def links(self, state, round, devices, seed):
        links, state = self.inner.links(state, round, devices, seed)
        return replace(links, gains=self.factor * links.gains), state

    def receive(self, links, signals, payloads):
        return self.inner.receive(links, signals, payloads)

    def probabilities(self, devices, signal):
        if not self.closed_form:
            return None
        thresholds = signal.coding.thresholds(self.inner.noise_to_power(devices))
        return self.inner.fading.survival(thresholds / self.factor)


def channel(factor=0.5, closed_form=False):
    return Half(outage_channel(RadioSection()), factor, closed_form)


@dataclass(frozen=True)
class Narrow:
    """Trains and sends the narrow width."""

    note: str = "first"
    name: str = "narrow"

    def evaluates(self):
        return (0,)

    def assign(self, device, round, random):
        return Work((0,), ((0,),))

    def start(self, model):
        return {}

    def merge(self, mean, state):
        return Merge(mean, state)


def dataset(label=0):
    """Its checksum is its author's invention; another label is another dataset all the same."""
    whole = synthetic(train=200, test=50, seed=4)
    labels = whole.train.labels.copy()
    labels[0] = label
    return Dataset("squares", Samples(whole.train.images, labels), whole.test, 10, "checksum")


#: What a run is made with, and another of its kind.
OBJECTS = {
    "network": (network, lambda: network(hidden=6)),
    "channel": (channel, lambda: channel(0.25)),
    "method": (Narrow, lambda: Narrow(note="second")),
    "dataset": (dataset, lambda: dataset(label=1)),
}


def begun(path, kind, rounds=2):
    """A run with an own object, stopped after two of three rounds."""
    given = {kind: OBJECTS[kind][0]()}
    values = SMALL if kind == "dataset" else {**SMALL, "data__dataset": "synthetic"}
    whole = asking.run(out=path, **given, **values)
    lines = (path / "metrics.jsonl").read_text().splitlines(keepends=True)
    newest = sorted((path / "checkpoints").iterdir())[-1]
    newest.unlink()
    (path / "metrics.jsonl").write_text("".join(lines[:rounds]))
    return whole


@pytest.mark.parametrize("kind", OBJECTS)
def test_what_was_given_is_recorded_and_no_default_in_its_place(kind, tmp_path):
    begun(tmp_path / "run", kind)
    tree = tomllib.loads((tmp_path / "run" / "experiment.toml").read_text())
    names = {
        "network": tree["model"]["name"],
        "dataset": tree["data"]["dataset"],
        "channel": tree["radio"]["model"],
        "method": tree["method"],
    }
    defaults = {"network": "ul-mobilenet", "dataset": "synthetic", "channel": "outage"}
    defaults["method"] = "slimfl"
    for other, name in names.items():
        if other == kind:
            assert name == ("narrow" if kind == "method" else "own")
        else:
            assert name == defaults[other]
    assert list(tree["provenance"]["own"]) == [kind]
    entry = tree["provenance"]["own"][kind]
    if kind == "dataset":
        assert entry["name"] == "squares"
    else:
        made = OBJECTS[kind][0]()
        assert entry["name"] == f"{type(made).__module__}:{type(made).__qualname__}"


@pytest.mark.parametrize("kind", OBJECTS)
def test_a_run_is_resumed_with_the_same_object_to_the_same_numbers(kind, tmp_path):
    whole = begun(tmp_path / "run", kind)
    resumed = slimfl.resume(tmp_path / "run", **{kind: OBJECTS[kind][0]()})
    np.testing.assert_array_equal(resumed.parameters, whole.parameters)


@pytest.mark.parametrize("kind", OBJECTS)
def test_nothing_goes_on_without_the_object(kind, tmp_path):
    path = tmp_path / "run"
    begun(path, kind)
    before = (path / "metrics.jsonl").read_bytes()
    with pytest.raises(RequestError, match=rf"slimfl\.resume\(path, {kind}=\.\.\.\)"):
        slimfl.resume(path)
    with pytest.raises(RequestError, match=rf"{kind}="):
        asking.run(path / "experiment.toml")
    folder = RunFolder.open(path)
    with pytest.raises(RequestError, match=rf"{kind}="):
        complete(Job(path, folder.experiment()))
    with pytest.raises(RequestError, match=rf"{kind}="):
        complete(Job(tmp_path / "again", folder.experiment()))
    assert (path / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize("kind", OBJECTS)
def test_another_object_than_the_original_is_refused(kind, tmp_path):
    begun(tmp_path / "run", kind)
    before = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    with pytest.raises(RequestError, match=f"another {kind}") as caught:
        slimfl.resume(tmp_path / "run", **{kind: OBJECTS[kind][1]()})
    assert "\n" not in str(caught.value)
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize("kind", OBJECTS)
def test_an_object_that_the_run_was_made_without_is_refused(kind, tmp_path):
    asking.run(out=tmp_path / "run", **{**SMALL, "data__dataset": "synthetic"})
    with pytest.raises(RequestError):
        slimfl.resume(tmp_path / "run", **{kind: OBJECTS[kind][0]()})


def test_a_network_needs_its_first_weights_only_until_there_is_a_checkpoint(tmp_path):
    path = tmp_path / "run"
    whole = begun(path, "network")
    shutil.copytree(path, tmp_path / "fresh")
    resumed = slimfl.resume(path, network=network(shift=1.0))
    np.testing.assert_array_equal(resumed.parameters, whole.parameters)
    shutil.rmtree(tmp_path / "fresh" / "checkpoints")
    (tmp_path / "fresh" / "metrics.jsonl").unlink()
    with pytest.raises(RequestError, match="original weights"):
        slimfl.resume(tmp_path / "fresh", network=network(shift=1.0))
    again = slimfl.resume(tmp_path / "fresh", network=network())
    np.testing.assert_array_equal(again.parameters, whole.parameters)


def test_what_is_named_is_not_taken_for_own(tmp_path):
    """The command line loads a dataset once and hands it to every run; a method may be ours."""
    experiment = build({"rounds": 1, "data": {"dataset": "synthetic", "train_samples": 100}})
    for data in (load_section(experiment.data), None):
        sim = slimfl.round.Simulation(experiment, dataset=data, method=SlimFL((0.5, 1.0)))
        assert sim.setting.provenance()["own"] == {}
        assert sim.experiment.data.dataset == "synthetic"
    cut = slimfl.round.Simulation(experiment, dataset=load("synthetic"))  # all samples, not 100
    assert list(cut.setting.provenance()["own"]) == ["dataset"]


def test_an_own_method_cannot_pass_for_a_built_in_one():
    for name in ("slimfl", "vanilla-0.5x", "vanilla-1.5x"):
        with pytest.raises(RequestError, match="rename your own method"):
            asking.run(method=Narrow(name=name), data__dataset="synthetic", rounds=1)


def test_a_run_says_which_method_it_ran_however_it_was_begun(tmp_path):
    experiment = build({"rounds": 1, "data": {"dataset": "synthetic"}, "training": {"steps": 1}})
    sim = slimfl.round.Simulation(experiment, method=Narrow())
    folder = RunFolder.create(tmp_path / "run", sim.experiment, sim.setting.provenance())
    run_simulation(sim, folder)
    assert folder.experiment().method == "narrow"


class Plain:
    """Settings in ordinary attributes, some of them arrays."""

    def __init__(self, rho, table):
        self.rho, self.table, self._seen = rho, table, object()


def test_fingerprints_follow_settings_and_nothing_else():
    def of(*arguments):
        return own.of_object(Plain(*arguments))["fingerprint"]

    first = of(0.5, np.arange(3))
    assert first == of(0.5, np.arange(3))  # another object, another address
    assert "0x" not in first
    assert len({first, of(0.6, np.arange(3)), of(0.5, np.arange(4)), of(0.5, [0, 1, 2])}) == 4
    loop = Plain(0.5, None)
    loop.table = loop
    assert own.of_object(loop) == own.of_object(loop)
    assert len(own.of_object(Plain("x" * 10_000, None))["fingerprint"]) == 64


class _Grey(dict):
    def __missing__(self, name):
        return "#888888"


def test_the_report_draws_no_expectation_beside_a_channel_without_one(tmp_path):
    begun(tmp_path / "own", "channel")
    asking.run(out=tmp_path / "named", **{**SMALL, "data__dataset": "synthetic"})
    mine, named = find([tmp_path / "own", tmp_path / "named"])
    assert expected_of(mine.experiment, mine.provenance) is None
    assert expected_of(named.experiment, named.provenance) is not None
    page = write_report([mine], tmp_path / "report.html").read_text()
    name = f"{__name__}:Half"
    assert f"own channel {name}" in page
    assert "Half(inner=OutageChannel(" in page
    assert 'radio={"model": ...}).run(' in html.unescape(page)  # how to repeat it
    assert "poor channel" not in page
    for record, drawn in ((mine, 0), (named, 2)):
        rows = summarise([record]).groups
        plot = plots.delivered(list(zip(group([record]), rows, strict=True)), _Grey())
        [bars] = plot["stacks"]
        diamonds = [mark for mark in plot["marks"]["values"] if mark is not None]
        assert (len(bars["values"]), len(diamonds)) == (2, drawn)
    rows = summaries([mine, named])
    assert [row["channel"] for row in rows] == ["own", "poor"]
    assert rows[0]["own"] == {"channel": name}


def test_what_the_report_expects_is_what_the_run_s_own_channel_says(tmp_path):
    """With gains half as strong, an exponential gain passes with the square of the probability."""
    values = {**SMALL, "data__dataset": "synthetic"}
    for name, given in (("own", {"channel": channel(closed_form=True)}), ("named", {})):
        asking.run(out=tmp_path / name, **given, **values)
    mine, named = find([tmp_path / "own", tmp_path / "named"])
    paper = np.array(expected_of(named.experiment, named.provenance))
    assert expected_of(mine.experiment, mine.provenance) == pytest.approx(paper**2)
    rows = summarise([mine]).groups
    plot = plots.delivered(list(zip(group([mine]), rows, strict=True)), _Grey())
    assert plot["marks"]["values"] == pytest.approx((100 * paper**2).tolist(), rel=1e-5)


def test_runs_with_different_own_objects_are_not_one_group(tmp_path):
    """Else two networks would be averaged as if they were two seeds."""
    values = {**SMALL, "data__dataset": "synthetic"}
    for seed, hidden in ((0, 4), (1, 4), (2, 6)):
        asking.run(out=tmp_path / f"{seed}", network=network(hidden), **{**values, "seed": seed})
    groups = summarise(find([tmp_path])).groups
    assert sorted(len(row.seeds) for row in groups) == [1, 2]


def test_a_hostile_record_of_own_objects_is_read_without_harm(tmp_path):
    begun(tmp_path / "run", "channel")
    record = find([tmp_path / "run"])[0]
    for table in (
        5,
        "x",
        [1],
        {"channel": 7},
        {"channel": {"name": [1]}},
        {"<b>": {"name": "<i>"}},
    ):
        hostile = replace(record, provenance={**record.provenance, "own": table})
        page = write_report([hostile], tmp_path / "report.html").read_text()
        assert "<i>" not in page.split("<script")[0]
