"""Asynchronous rounds: identical devices match synchronous rounds bit for bit, others by hand."""

import heapq
import json
import shutil
from collections import Counter

import numpy as np
import pytest

import slimfl
from slimfl.errors import RequestError, RunError
from slimfl.experiment import build
from slimfl.methods import method
from slimfl.methods.method import full_work
from slimfl.radio import outage_channel
from slimfl.report.pages.run_report import page
from slimfl.results.devices import delivery, device_summary
from slimfl.results.per_run import run_summary
from slimfl.results.records import load
from slimfl.round import RunFolder, Simulation, run
from slimfl.round.uploads import work_of_row, work_rows
from tests import asking
from tests.killed_runs import rewrite
from tests.round.test_plan import Counting

BASE = {
    "rounds": 6,
    "threads": 1,
    "data": {
        "dataset": "synthetic",
        "train_samples": 400,
        "test_samples": 50,
        "partition": "iid",
    },
    "training": {"steps": 2, "batch_size": 8},
    "federation": {"devices": 10},
}


def experiment(changes=None, **time):
    tree = {**BASE, "time": {"mode": "asynchronous", **time}} if time is not None else dict(BASE)
    for key, value in (changes or {}).items():
        tree[key] = {**tree.get(key, {}), **value} if isinstance(value, dict) else value
    return build(tree)


def stepped(described, **given):
    sim = Simulation(described, **given)
    return sim, [sim.step() for _ in range(described.rounds)]


def carried_out(described, path):
    sim = Simulation(described)
    run(sim, RunFolder.create(path, sim.experiment, sim.setting.provenance()))


def comparable(line):
    values = line.as_json()
    for key in ("seconds", "staleness", "missing", "label_accuracy"):
        values.pop(key, None)
    return values


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"method": "vanilla-1.0x"},
        {"method": "fjord"},
        {"radio": {"channel": "good"}},
        {"federation": {"dropout": 0.3}},
        {"federation": {"missing": "zero", "absent": "old"}},
        {"federation": {"average": "samples"}, "training": {"optimiser": "sgd"}},
        {"model": {"widths": [0.25, 0.5, 1.0]}, "training": {"algorithm": "ustrain"}},
        {"engine": "torch", "training": {"schedule": "cosine"}},
        {"training": {"optimiser_state": "fresh", "schedule": "theorem1"}},
    ],
    ids=lambda changes: json.dumps(changes),
)
def test_equal_devices_and_as_many_places_are_synchronous_to_the_bit(changes):
    """The channel is poor: uploads that are lost take their place in the buffer."""
    together, rounds = stepped(experiment({**changes, "time": {"mode": "wait-for-all"}}))
    apart, steps = stepped(experiment(changes))
    assert [comparable(line) for line in steps] == [comparable(line) for line in rounds]
    np.testing.assert_array_equal(apart.global_model, together.global_model)
    states, theirs = apart.engine.states.export(), together.engine.states.export()
    assert states.keys() == theirs.keys()
    for name, value in states.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)


def test_pairs_are_refused_because_they_need_common_rounds():
    """Devices of one pace would pair up, but others would mostly send alone."""
    with pytest.raises(RequestError, match=r"radio\.users_per_slot = 1") as caught:
        experiment({"radio": {"users_per_slot": 2}}, concurrency=4)
    assert "\n" not in str(caught.value)
    assert experiment({"radio": {"users_per_slot": 2}, "time": {"mode": "wait-for-all"}})


def test_time_and_place_of_every_merge():
    """Ten devices, four at a time, three places: walked with a heap and a counter.

    Fixed airtime and no time for computing: every task takes as long as its upload.
    """
    described = experiment({"radio": {"model": "rate-adaptive"}}, concurrency=4, buffer=3)
    sim, lines = stepped(described)
    clock, heard = 0.0, []
    for line in lines:
        assert line["clock_s"] == pytest.approx(clock + line["duration_s"])
        assert len(line["devices"]) == 3
        assert line["delivered"] == [3, 3]
        heard += line["devices"]
        clock = line["clock_s"]
    # nobody is at work twice at once, and four are at work at any time
    assert len(sim.state.asynchronous.flights) <= 4
    assert len(sim.state.asynchronous.models) <= 4
    times = [flight[0] for flight in heapq.nsmallest(4, sim.state.asynchronous.flights)]
    assert all(at >= clock for at in times)
    assert any(value for line in lines for value in line["staleness"] if value)


def test_every_segment_has_its_own_buffer():
    """With arrivals counted, segment 2 is merged less often over the poor channel."""
    described = experiment({"rounds": 12}, concurrency=5, buffer=4, buffer_counts="arrivals")
    sim = Simulation(described)
    merges = np.zeros(2, int)
    positions = sim.setting.segments.positions
    for _ in range(described.rounds):
        before, versions = sim.global_model.copy(), sim.state.asynchronous.buffers.versions.copy()
        line = sim.step()
        flushed = sim.state.asynchronous.buffers.versions - versions
        assert flushed.sum() > 0
        for segment, times in enumerate(flushed.tolist()):
            changed = (sim.global_model != before)[positions[segment]].any()
            assert changed == bool(times)
            assert (line["staleness"][segment] is not None) == bool(times)
        merges += flushed
    assert merges[0] > merges[1] > 0


FAST_AND_SLOW = [
    {"name": "fast", "share": 0.5, "macs_per_s": 1e10, "availability": 0.8},
    {"name": "slow", "share": 0.5, "macs_per_s": 2e9, "battery_j": 2e-3},
]


def test_the_last_merge_divides_every_segment_by_its_own_places():
    """Two devices end with a lone upload of segment 2, while segment 1's buffer has more places."""
    classes = [
        {"name": "able", "share": 0.5, "macs_per_s": 1e9, "battery_j": 0.004},
        {"name": "capped", "share": 0.5, "macs_per_s": 1e9, "battery_j": 0.012, "max_width": 0.5},
    ]
    described = experiment(
        {
            "federation": {"devices": 2, "absent": "old"},
            "population": {"classes": classes},
            "radio": {"noise_dbm": -38.0},
        },
        buffer=1000,
    )
    sim = Simulation(described)
    rounds, owed, came = sim.state.asynchronous, np.zeros(2, int), ([], [])
    add, positions = rounds.buffers.add, sim.setting.segments.positions

    def noted(landed):
        for segment in landed.upload.sent:
            owed[segment] += 1
        if landed.arrived:
            pending.append(landed)
        add(landed)

    pending = []
    rounds.buffers.add = noted
    merged = {}
    take = rounds.buffers.take

    def taken(segments):
        for landed in pending:
            for segment in landed.arrived:
                came[segment].append(landed.upload.parameters[positions[segment]])
        merged.update(before=sim.global_model.copy())
        return take(segments)

    rounds.buffers.take = taken
    line = sim.step()
    assert line["stopped_by"] == "no device left"
    assert 0 < len(came[1]) < owed[1] < owed[0]
    for segment, where in enumerate(positions):
        last = merged["before"][where].astype(np.float64)
        lost = owed[segment] - len(came[segment])
        expected = (np.sum(came[segment], axis=0, dtype=np.float64) + lost * last) / owed[segment]
        np.testing.assert_allclose(sim.global_model[where], expected, rtol=1e-5, atol=1e-6)


def test_every_task_counts_in_the_delivered_share(tmp_path, monkeypatch):
    """Fast devices end several tasks before a merge; some of them in silence, or not reached."""
    from slimfl.round.asynchronous import Asynchronous

    tasks = []
    land = Asynchronous._land
    monkeypatch.setattr(
        Asynchronous,
        "_land",
        lambda self, flight: (tasks.append(flight), land(self, flight))[1],
    )
    described = experiment(
        {
            "rounds": 12,
            "training": {"steps": 1, "batch_size": 2},
            "federation": {"devices": 6, "dropout": 0.4},
            "population": {"classes": FAST_AND_SLOW},
        },
        concurrency=6,
        buffer=24,
    )
    carried_out(described, tmp_path / "run")
    record = load(tmp_path / "run")  # it reads back what it wrote
    row, told = run_summary(record), delivery(record.lines, 6)
    by_device = Counter(each.device for each in tasks)
    heard = Counter(each.device for each in tasks if each.upload.decoded)
    assert max(by_device.values()) > 2 * len(record.lines)
    assert told.asked.tolist() == [by_device[device] for device in range(6)]
    assert told.heard.tolist() == [heard[device] for device in range(6)]
    for segment, arrived in enumerate(row["segments"]):
        assert arrived["asked"] == len(tasks)
        # one message per segment
        assert arrived["delivered"] == sum(each.upload.decoded > segment for each in tasks)
    reasons = Counter(each.reason for each in tasks if each.reason)
    assert {"offline", "no answer", "battery"} == {*reasons}
    reasons |= Counter(f"outage of segment {n.upload.decoded + 1}" for n in tasks
                       if not n.reason and n.upload.decoded < 2)  # fmt: skip
    assert row["missing"] == dict(sorted(reasons.items()))
    shares = device_summary(record).missing
    assert shares == {why: count / len(tasks) for why, count in sorted(reasons.items())}


@pytest.mark.parametrize(
    ("radio", "key"),
    [
        ({"fading_process": "ar1", "fading_correlation": 0.5}, "fading_process"),
        ({"fading_process": "ar1", "doppler_hz": 0.1}, "fading_process"),
        ({"fading_process": "jakes", "doppler_hz": 0.1}, "fading_process"),
        ({"speed_m_s": 1.0}, "speed_m_s"),
        ({"shadowing_db": 4.0, "shadowing_correlation": 0.5}, "shadowing_correlation"),
        (
            {"path_loss": "umi", "noise_dbm": -90, "shadowing_correlation": 0.5},
            "shadowing_correlation",
        ),
    ],
    ids=str,
)
def test_links_that_change_with_memory_are_refused_by_their_key(radio, key, tmp_path):
    with pytest.raises(RequestError, match=rf"radio\.{key} .* set it to") as caught:
        experiment({"radio": radio})
    assert "\n" not in str(caught.value)
    settings = {f"radio__{name}": value for name, value in radio.items()}
    with pytest.raises(RequestError, match=f"radio.{key}"):
        asking.run(rounds=1, out=tmp_path / "run", time__mode="asynchronous", **settings)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "radio",
    [
        {"fading_process": "ar1", "fading_correlation": 1.0},
        {"fading_process": "jakes", "doppler_hz": 0.0},
        {"shadowing_db": 4.0, "shadowing_correlation": 1.0},
        {"shadowing_correlation": 0.5},
    ],
    ids=str,
)
def test_links_that_never_change_need_no_common_rounds(radio):
    _, lines = stepped(experiment({"radio": radio, "rounds": 2}))
    assert len(lines) == 2


@pytest.mark.parametrize("name", ["fedrolex", "split-mix"])
def test_methods_whose_channels_change_are_refused_before_a_folder_is_made(name, tmp_path):
    described = experiment({"method": name})
    with pytest.raises(RequestError, match="fixed segments"):
        carried_out(described, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_channel_with_a_memory_is_refused():
    described = experiment()
    channel = Counting(outage_channel(described.radio))
    with pytest.raises(RequestError, match="no common rounds"):
        Simulation(described, channel=channel).step()


@pytest.mark.slow
def test_a_buffer_that_never_fills_ends_the_run():
    described = experiment(
        {"radio": {"noise_dbm": 60.0}, "training": {"steps": 1}},
        concurrency=1,
        buffer=1,
        buffer_counts="arrivals",
    )
    with pytest.raises(RunError, match=r"time\.buffer"):
        Simulation(described).step()


def test_an_assignment_on_its_way_is_restored_with_what_is_still_counted():
    """FjORD's images are counted by how its widths are visited, after the update has landed."""
    for name in ("fjord", "fjord-kd", "slimfl"):
        given = full_work(method(name, (0.5, 1.0)), 2)
        back = work_of_row(work_rows([given], 2)[0])
        assert (back.widths, back.messages) == (given.widths, given.messages)
        seen = np.array([4, 6])
        assert back.images_trained_on(seen) == given.images_trained_on(seen)


@pytest.fixture(scope="module")
def half_done(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "half"
    described = experiment(concurrency=4, buffer=3, buffer_counts="arrivals")
    carried_out(described, path)
    toml = path / "experiment.toml"
    toml.write_text(toml.read_text().replace("rounds = 6", "rounds = 8"))
    return path


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("flight/work/whole", lambda v: v + 100),
        ("flight/work/real", lambda v: v * np.nan),
        ("flight/work/parameters", lambda v: v * np.inf),
        ("flight/begun", lambda v: v[:2]),
        ("flight/models", lambda v: v[:, :3]),
        ("flight/steps", lambda v: v + 1),
        ("flight/parts", None),
    ],
)
def test_what_no_run_holds_is_refused(half_done, tmp_path, name, value):
    path = shutil.copytree(half_done, tmp_path / "copy")

    def change(state, tensors):
        if value is None:
            del tensors[name]
        else:
            with np.errstate(invalid="ignore"):
                tensors[name] = np.ascontiguousarray(value(tensors[name]))

    for file in (path / "checkpoints").glob("round-*.safetensors"):
        rewrite(file, change)
    with pytest.raises(RequestError, match="does not fit this run"):
        slimfl.resume(path)


def test_a_run_in_which_devices_ended_several_tasks_and_none_was_silent_has_a_report(tmp_path):
    described = experiment({"rounds": 3, "radio": {"model": "rate-adaptive"}})
    carried_out(described, tmp_path / "run")
    found = load(tmp_path / "run")
    assert [line.silent for line in found.lines] == [[], [], []]
    told = delivery(found.lines, 10)
    assert told.asked.sum() == sum(len(line.devices) for line in found.lines)
    assert "missing" in page([found])
