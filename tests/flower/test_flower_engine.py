"""The flower engine: the numbers of the torch engine, and a round that survives bad devices."""

import logging
import resource
import sys
from collections import Counter
from dataclasses import replace
from random import Random

import httpx
import numpy as np
import pytest
import tomli_w
from fake_grid import Node, federation, honest
from flwr.app import Array, ArrayRecord, Error, Message, RecordDict

import slimfl
from slimfl.data import Samples, save, synthetic
from slimfl.engines import Missing
from slimfl.errors import RequestError, RunError
from slimfl.experiment import DataSection, build
from slimfl.experiment.naming import trusted, trusting
from slimfl.flower import device as device_module
from slimfl.flower import engine as engine_module
from slimfl.flower.connect import Claims, deployed, registered
from slimfl.flower.device import Equipment, Workbench
from slimfl.flower.messages import ARRAYS, CONFIG, PARAMETERS, STATE, parameters_record
from slimfl.round import RunFolder, Simulation, run

DATASET = synthetic()


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(engine_module, "POLL_S", (0.001, 0.01))


def experiment(engine="flower", **changes):
    tree = {
        "rounds": 3,
        "engine": engine,
        "threads": 1,
        "data": {"dataset": "synthetic"},
        # batches of 64 are above the size at which the torch engine trains devices as cohorts
        "training": {"steps": 2, "batch_size": 64},
        "federation": {"devices": 4},
        "flower": {"device_engine": "torch", "wait_s": 0.2, "round_timeout_s": 0.3},
    }
    for key, value in changes.items():
        section, _, name = key.partition("__")
        if name:
            tree.setdefault(section, {})[name] = value
        else:
            tree[section] = value
    return build(tree)


def simulation(grid, **changes):
    return Simulation(experiment(**changes), dataset=DATASET, engine=deployed(grid))


def tasks_of(sim, devices):
    """What some devices are asked in the first round."""
    return [task for task in sim.plan().tasks if task.device in devices]


def without_seconds(lines):
    return [{k: v for k, v in line.items() if k != "seconds"} for line in lines]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"method": "vanilla-0.5x"},
        {"model__widths": (0.25, 0.5, 0.75, 1.0), "training__optimiser_state": "fresh"},
        {"flower__device_engine": "native", "federation__participation": 0.5},
        {
            "model__widths": (0.25, 0.5, 0.75, 1.0),
            "training__algorithm": "ustrain",
            "training__sampled_widths": 3,
            "training__steps": 5,
        },
    ],
    ids=["slimfl", "vanilla", "four widths", "native", "sandwich rule"],
)
def test_the_numbers_are_those_of_the_engine_in_this_process(changes):
    there = simulation(federation(4), **changes)
    lines = run(there)
    engine = changes.get("flower__device_engine", "torch")
    here = Simulation(experiment(engine, **changes), dataset=DATASET)
    assert without_seconds(lines) == without_seconds(run(here))
    np.testing.assert_array_equal(there.global_model, here.global_model)


def test_a_stopped_run_resumes_with_the_same_numbers_on_other_devices(tmp_path):
    """Devices are stateless: the new federation knows nothing of the first rounds."""
    whole = simulation(federation(4))
    run(whole)
    folder = RunFolder.create(tmp_path / "run", whole.experiment, whole.setting.provenance())
    first = simulation(federation(4))
    first.setting.experiment = first.experiment.model_copy(update={"rounds": 2})
    run(first, folder)
    resumed = slimfl.resume(tmp_path / "run", engine=deployed(federation(4)))
    np.testing.assert_array_equal(resumed.parameters, whole.global_model)
    assert [line["round"] for line in resumed.lines] == [1, 2, 3]


def silent(order, message, record):
    return []


def broken(order, message, record):
    return [Message(Error(8, "the process was killed"), reply_to=message)]


def answering(change):
    """An answer of which something was changed."""

    def fault(order, message, record):
        change(record)
        return [Message(record, reply_to=message)]

    return fault


def saying(**values):
    """An answer with other values in its configuration; None for none."""

    def change(record):
        config = record.config_records[CONFIG]
        for name, value in values.items():
            key = name.replace("_", "-")
            if value is None:
                del config[key]
            else:
                config[key] = value

    return answering(change)


def counting(*counts):
    return saying(images_seen=list(counts))


def with_parameters(change):
    """An answer with other parameters."""

    def replace_them(record):
        values = record.array_records[ARRAYS][PARAMETERS].numpy().copy()
        record.array_records[ARRAYS] = ArrayRecord({PARAMETERS: Array(change(values))})

    return answering(replace_them)


def body(damage):
    """The bytes of the parameters, damaged."""

    def replace_them(record):
        array = record.array_records[ARRAYS][PARAMETERS]
        record.array_records[ARRAYS] = ArrayRecord(
            {PARAMETERS: Array(array.dtype, array.shape, array.stype, damage(array.data))}
        )

    return answering(replace_them)


def header(text):
    """A body of NumPy's format with this header, and four numbers."""
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(16)


def header_of(shape):
    return header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n")


def nothing(order, message, record):
    reply = Message(record, reply_to=message)
    reply.__dict__["_content"] = None
    return [reply]


def other_state(record):
    record.array_records[STATE] = ArrayRecord(
        {f"moment {k}": Array(np.zeros(1, np.float32)) for k in range(9)}
    )


def with_state(name, change):
    """An answer with another array in its optimiser's state."""

    def replace_it(record):
        state = dict(record.array_records[STATE].items())
        state[name] = Array(np.asarray(change(state[name].numpy()), np.float32))
        record.array_records[STATE] = ArrayRecord(state)

    return answering(replace_it)


def another_node(order, message, record):
    reply = Message(record, reply_to=message)
    reply.metadata.__dict__["_src_node_id"] = 7
    return [reply]


MISSING = {
    "does not answer": (silent, "did not answer within 0.3 s"),
    "killed": (broken, "the process was killed"),
    "leaves out who it is": (saying(trained_from=None), "not one of slimfl's"),
    "answers as somebody else": (saying(device=0), "answers as device 0"),
    "answers for another round": (saying(round=0), "answers for round 0"),
    "sends another model's weights": (saying(trained_from="0" * 64), "another model"),
    "sends other numbers": (with_parameters(np.float64), "float64"),
    "saw no image": (counting(0, 0), "impossible counts"),
    "saw fewer than no image": (counting(-5, 5), "impossible counts"),
    "saw more images at half width": (counting(9, 8), "impossible counts"),
    "saw images at a third width": (counting(8, 8, 8), "impossible counts"),
    "claims more samples than it was given": (saying(samples=2**50), "1125899906842624 samples"),
    "claims a single sample": (saying(samples=1), "reports 1 samples"),
    "counts images in parts": (counting(0.5, 8.0), "not one of slimfl's"),
    "lets another node answer": (another_node, "another node answered"),
    "sends an answer without content": (nothing, "empty"),
    "sends no bytes": (body(lambda data: b""), "not one of slimfl's"),
    "sends a zip file": (body(lambda data: b"PK\x03\x04" + data), "not one of slimfl's"),
    "sends a shape of terabytes": (body(lambda data: header_of((10**12, 4))), "as many numbers"),
    "sends a shape of no integer": (body(lambda data: header_of((2**70,))), "as many numbers"),
    "sends a negative shape": (body(lambda data: header_of((-2, -2))), "as many numbers"),
    "sends half a model": (body(lambda data: data[: len(data) // 2]), "as many numbers"),
    "sends more than a model": (body(lambda data: data + bytes(4)), "as many numbers"),
    "sends a deep header": (body(lambda data: header("(" * 9000)), "not one of slimfl's"),
    "sends another optimiser's state": (answering(other_state), "another optimiser"),
    "saw more images than were ordered": (counting(2**62, 2**62), "impossible counts"),
    "saw more images than fit": (counting(2**63 - 1, 2**63 - 1), "impossible counts"),
    "saw one image more than was ordered": (counting(129, 129), "impossible counts"),
    "measures a gain that cannot be": (saying(gain=1e300), "not a power gain"),
    "learns with a loss that spoils the mean": (saying(losses=[1e300, 1.0]), "a loss of 1e+300"),
    "learns with an infinite loss": (saying(losses=[1.0, float("-inf")]), "a loss of -inf"),
    "counts half steps": (with_state("step", lambda step: step + 0.5), "does not fit the model"),
    "counts steps beyond the exact": (with_state("step", lambda step: step + 1e30), "does not fit"),
    "squares to less than nothing": (with_state("exp_avg_sq", lambda v: v - 1), "does not fit"),
    "measures an infinite gain": (saying(gain=float("inf")), "not a power gain"),
}


@pytest.mark.parametrize("fault", MISSING)
def test_a_round_goes_on_without_a_device_that(fault, caplog):
    behaviour, reason = MISSING[fault]
    sim = simulation(federation(4, faults={2: behaviour}), radio__noise_dbm=-200.0)
    with caplog.at_level(logging.WARNING):
        line = sim.step()
    assert line["devices"] == [0, 1, 3]
    assert line["dropped_out"] == [2]
    assert line["delivered"] == [3, 3]
    assert len(line["gains"]) == len(line["decoded"]) == 3
    assert "round 1: nothing from device 2" in caplog.text
    assert reason in caplog.text
    expected = Simulation(experiment("torch", radio__noise_dbm=-200.0), dataset=DATASET)
    updates = list(expected.engine.train(1, expected.global_model, tasks_of(expected, [0, 1, 3])))
    mean = np.mean([update.parameters.astype(np.float64) for update in updates], axis=0)
    np.testing.assert_allclose(sim.global_model, mean, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of NumPy, about damaged headers
def test_an_answer_damaged_anywhere_is_merged_or_named_and_never_ends_the_round():
    """Random damage to the header of the parameters and of the state, in bytes and in text."""
    random = Random(0)
    sim = simulation(federation(1), federation__devices=1)
    [task] = sim.plan().tasks
    order = sim.engine.order(1, sim.global_model, task)
    honest_answer = Workbench().work(order, Equipment(number=0)).record()
    tokens = [b"(", b")", b"'", b"<f8", b"|O", b"9" * 20, b"-", b"True", b"PK", b"\n", b"#", b"\\"]

    def damaged(data):
        data = bytearray(data)
        for _ in range(random.randint(1, 4)):
            at = random.randrange(min(len(data), 128)) if data else 0
            match random.randrange(4):
                case 0:
                    data[at : at + 1] = bytes([random.randrange(256)])
                case 1:
                    del data[at : at + random.randint(1, 60)]
                case 2:
                    data[at : at + random.randint(0, 3)] = random.choice(tokens)
                case 3:
                    del data[at:]
        return bytes(data)

    outcomes = Counter()
    message = sim.engine.message(order, 1000, parameters_record(order.start))
    for _ in range(500):
        records = dict(honest_answer.array_records.items())
        name = random.choice(list(records))
        arrays = dict(records[name].items())
        key = random.choice(list(arrays))
        one = arrays[key]
        arrays[key] = Array(one.dtype, one.shape, one.stype, damaged(one.data))
        record = RecordDict({**records, name: ArrayRecord(arrays)})
        record[CONFIG] = honest_answer.config_records[CONFIG]
        outcome = sim.engine.outcome(order, Message(record, reply_to=message))
        assert outcome.device == 0
        outcomes[type(outcome)] += 1
    assert outcomes[Missing] > 250


def with_nan(values):
    values[7] = np.nan
    return values


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (with_nan, "NaN"),
        (lambda v: v[:-1], "shape"),
        (lambda v: np.full_like(v, 3e38), "no training"),
    ],
    ids=["NaN", "shape", "finite and huge"],
)
def test_an_update_that_cannot_be_merged_is_refused(change, reason, caplog):
    faults = {1: with_parameters(change)}
    sim = simulation(federation(4, faults=faults), radio__noise_dbm=-200.0)
    with caplog.at_level(logging.WARNING):
        line = sim.step()
    assert line["refused"] == [1]
    assert line["delivered"] == [3, 3]
    assert reason in caplog.text
    assert np.abs(sim.global_model).max() < 1000
    assert sim.step()["devices"] == [0, 1, 2, 3]


def test_a_second_answer_changes_nothing(caplog):
    def twice(order, message, record):
        return honest(order, message, record) * 2

    sim = simulation(federation(4, faults=dict.fromkeys(range(4), twice)))
    once = simulation(federation(4))
    with caplog.at_level(logging.WARNING):
        assert without_seconds(run(sim)) == without_seconds(run(once))
    np.testing.assert_array_equal(sim.global_model, once.global_model)
    assert "ignored an unexpected answer" in caplog.text


def test_a_late_answer_does_not_enter_the_next_round(caplog):
    kept = []

    def late(order, message, record):
        kept.extend(honest(order, message, record))
        return [kept.pop(0)] if order.round == 2 else []  # the answer to round 1, in round 2

    sim = simulation(federation(4, faults={3: late}))
    with caplog.at_level(logging.WARNING):
        lines = [sim.step(), sim.step()]
    assert [line["dropped_out"] for line in lines] == [[3], [3]]
    assert "ignored an unexpected answer" in caplog.text


def test_half_the_devices_gone_for_ten_rounds():
    grid = federation(4)
    sim = simulation(grid, rounds=14)
    lines = [sim.step(), sim.step()]
    grid.away = {1, 3}
    lines += [sim.step() for _ in range(10)]
    grid.away = set()
    lines += [sim.step(), sim.step()]
    gone = [line["dropped_out"] for line in lines]
    assert gone == [[], []] + [[1, 3]] * 10 + [[], []]
    assert not [asked for asked in grid.asked if asked[0] in range(3, 13) and asked[1] in (1, 3)]
    # they come back with the moments of their last round
    steps = {k: float(v) for k, v in sim.engine.states.export().items() if k.endswith("/step")}
    assert steps == {"0/step": 28.0, "1/step": 8.0, "2/step": 28.0, "3/step": 8.0}


def test_a_round_waits_for_a_quorum_and_says_for_whom(caplog, monkeypatch):
    grid = federation(4, away={0, 1, 2})
    sleep = engine_module.time.sleep

    def return_later(seconds):
        grid.away = set()
        sleep(seconds)

    monkeypatch.setattr(engine_module.time, "sleep", return_later)
    with caplog.at_level(logging.WARNING):
        line = simulation(grid).step()
    assert "round 1: waiting for devices 0, 1, 2" in caplog.text
    assert line["devices"] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("trouble", "sentence"),
    [
        ({"away": {0, 1, 2}}, "waited 0.2 s for a quorum of 2 devices, .*: 0, 1, 2"),
        (
            {"faults": dict.fromkeys((0, 1, 2), silent)},
            "1 of 4 devices answered but the quorum is 2",
        ),
    ],
    ids=["absent", "silent"],
)
def test_below_the_quorum_the_run_stops_with_a_folder_that_resumes(trouble, sentence, tmp_path):
    whole = simulation(federation(4))
    run(whole)
    grid = federation(4)
    sim = simulation(grid)
    folder = RunFolder.create(tmp_path / "run", sim.experiment, sim.setting.provenance())
    step = sim.step

    def trouble_in_round_2():
        if sim.round == 1:
            for name, value in trouble.items():
                setattr(grid, name, value)
        return step()

    sim.step = trouble_in_round_2
    with pytest.raises(RunError, match=sentence) as stopped:
        run(sim, folder)
    assert "slimfl resume" in str(stopped.value)
    assert [line["round"] for line in folder.metrics()] == [1]
    resumed = slimfl.resume(tmp_path / "run", engine=deployed(federation(4)))
    np.testing.assert_array_equal(resumed.parameters, whole.global_model)


def test_a_superlink_that_does_not_answer_stops_the_run():
    grid = federation(4)

    def refuse(message_ids):
        raise httpx.ConnectError("connection refused")

    grid.pull_messages = refuse
    with pytest.raises(RunError, match=r"SuperLink does not answer.*slimfl resume"):
        simulation(grid).step()


def test_a_node_that_is_another_device_than_it_was_registered_as_refuses_to_work(caplog):
    grid = federation(4)
    grid.nodes[0].equipment = Equipment(number=1)  # registered as device-3
    with caplog.at_level(logging.WARNING):
        line = simulation(grid).step()
    assert line["dropped_out"] == [3]
    assert "this node is device 1 and was asked as device 3" in caplog.text


def test_a_device_with_other_data_than_the_server_says_so(caplog):
    other = replace(synthetic(seed=1), loaded_as=DATASET.loaded_as)
    sim = Simulation(experiment(), dataset=other, engine=deployed(federation(4)))
    with pytest.raises(RunError, match="synthetic data differ from the server"):
        sim.step()


def test_more_devices_than_fit_the_window_are_asked_in_turn(monkeypatch):
    monkeypatch.setattr(engine_module, "WINDOW", 3)
    monkeypatch.setattr(engine_module, "BATCH", 1)
    changes = {"federation__devices": 9, "training__steps": 1, "rounds": 1}
    there, here = (
        simulation(federation(9), **changes),
        Simulation(experiment("torch", **changes), dataset=DATASET),
    )
    run(there), run(here)
    np.testing.assert_array_equal(there.global_model, here.global_model)


def test_measured_gains_decide_what_arrives(tmp_path):
    gains = [0.5, 0.05, 0.2, 3.0]
    grid = federation(4)
    for k, gain in enumerate(gains[:3]):
        (tmp_path / f"gain-{k}").write_text(f"{gain}\n")
    for node in grid.nodes:
        number = node.equipment.number
        node.equipment = Equipment(number=number, gain_file=tmp_path / f"gain-{number}")
    (tmp_path / "gain-3").write_text("no signal")
    line = simulation(grid, radio__gains="measured").step()
    assert line["devices"] == [0, 1, 2]  # device 3 measured nothing
    assert line["gains"] == gains[:3]
    sim = Simulation(experiment("torch"), dataset=DATASET)
    [sent, *_], [noise_to_power, *_] = sim.plan().signals, sim.plan().links.noise_to_power
    thresholds = sent.coding.thresholds(noise_to_power)
    assert line["decoded"] == [sum(gain >= t for t in thresholds) for gain in gains[:3]]


def test_a_device_without_a_measurement_is_missing_when_gains_are_measured(caplog):
    with caplog.at_level(logging.WARNING):
        line = simulation(federation(4), radio__gains="measured").step()
    assert line["dropped_out"] == [0, 1, 2, 3]
    assert "device 2: it reported no measured gain; give its node a gain-file" in caplog.text


def test_what_only_real_devices_have_is_not_simulated():
    for change in ({"radio__gains": "measured"}, {"data__partition": "own"}):
        sim = Simulation(experiment(**change), dataset=DATASET)
        with pytest.raises(RequestError, match="--superlink"):
            sim.step()
        with pytest.raises(RequestError, match='engine = "flower"'):
            experiment("torch", **change)


def test_a_device_may_bring_its_own_data(tmp_path):
    """Four devices whose folders hold their shares learn what devices with shares learn."""
    shared = Simulation(experiment("torch"), dataset=DATASET)
    grid = federation(4)
    for node in grid.nodes:
        number = node.equipment.number
        folder = tmp_path / str(number)
        folder.mkdir()
        held = shared.setting.partition.of(number)
        share = Samples(DATASET.train.images[held], DATASET.train.labels[held])
        save(folder, share, DATASET.test)
        node.equipment = Equipment(number=number, data_dir=folder)
    own = simulation(grid, data__partition="own", rounds=1, flower__quorum=0.25)
    line, expected = own.step(), shared.step()
    assert line["training_loss"] == expected["training_loss"]
    assert (
        line["multiply_adds"] == expected["multiply_adds"]
    )  # they tell how many samples they hold
    np.testing.assert_array_equal(own.global_model, shared.global_model)
    # only the device knows how many samples it holds, up to what an honest one would train on
    grid.faults = {2: saying(samples=12_345)}
    assert own.step()["devices"] == [0, 1, 2, 3]
    grid.faults = {2: saying(samples=10**9), 1: saying(samples=2**62), 0: saying(samples=0)}
    assert own.step()["devices"] == [3]


def test_devices_elsewhere_are_not_told_where_this_machine_has_its_data():
    changes = {"data__dir": "/srv/private/place"}
    assert "/srv/private" not in simulation(federation(4), **changes).engine.description
    # those of a simulation are on this machine and need it
    assert "/srv/private" in Simulation(experiment(**changes), dataset=DATASET).engine.description


def test_a_device_finds_a_folder_dataset_where_its_own_data_are(tmp_path):
    from slimfl.data import load

    (tmp_path / "server").mkdir()
    save(tmp_path / "server", DATASET.train, DATASET.test)
    (tmp_path / "server").rename(tmp_path / "device")
    grid = federation(4)
    for node in grid.nodes:
        number = node.equipment.number
        node.equipment = Equipment(number=number, data_dir=tmp_path / "device")
    described = experiment(data__dataset=str(tmp_path / "server"))
    sim = Simulation(described, dataset=load(str(tmp_path / "device")), engine=deployed(grid))
    assert sim.step()["devices"] == [0, 1, 2, 3]


def test_own_networks_and_wrong_engines_are_refused():
    from slimfl.flower import SlimFLStrategy

    with pytest.raises(RequestError, match=r"package\.module:factory"):
        Simulation(experiment(), dataset=DATASET, network=slimfl.nn.ULMobileNet())
    with pytest.raises(RequestError, match='engine = "flower"'):
        SlimFLStrategy(experiment("torch"), federation(4))


class TestWhoIsWho:
    def test_a_name_makes_a_device(self):
        grid = federation(2)
        grid.nodes += [Node(5, "gateway"), Node(6, "device-x"), Node(7, "")]
        assert registered(grid) == {0: 1000, 1: 999}

    def test_without_names_nodes_are_asked_once_and_the_first_to_claim_stays(self, caplog):
        from flwr.app import ConfigRecord, RecordDict

        claims = {11: 0, 12: 1, 13: 1}
        asked = []

        class Grid:
            present = (11, 12)

            def get_node_ids(self):
                return self.present

            def send_and_receive(self, messages, timeout):
                for message in messages:
                    node = message.metadata.dst_node_id
                    asked.append(node)
                    told = RecordDict({CONFIG: ConfigRecord({"device": claims[node]})})
                    yield Message(told, reply_to=message)

        grid = Grid()
        roster = Claims(grid)
        assert roster.nodes() == {0: 11, 1: 12}
        grid.present = (11, 13, 12)
        with caplog.at_level(logging.WARNING):
            assert roster.nodes() == {0: 11, 1: 12}
        assert "ignored node 13, which claims to be device 1" in caplog.text
        grid.present = (13,)
        assert roster.nodes() == {1: 13}
        assert asked == [11, 12, 13]


OWN_NETWORKS = """
from pathlib import Path
from torch import nn
from slimfl.nn import slimmable
Path({marker!r}).write_text("imported")

def small(in_channels, classes, hidden=4):
    return slimmable(nn.Sequential(
        nn.Conv2d(in_channels, hidden, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(hidden, classes),
    ))
"""


@pytest.fixture
def own_networks(tmp_path, monkeypatch):
    """The name of a network in a module that leaves a trace when it is imported."""
    marker = tmp_path / "imported"
    (tmp_path / "networks_of_a_device.py").write_text(OWN_NETWORKS.format(marker=str(marker)))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("SLIMFL_TRUST", raising=False)
    yield "networks_of_a_device:small", marker
    sys.modules.pop("networks_of_a_device", None)


def test_a_device_looks_for_data_where_it_was_configured_to_and_nowhere_else(tmp_path):
    ordered = DataSection(dataset="mnist", dir=tmp_path)
    assert device_module._here(ordered, None).dir is None
    assert device_module._here(ordered, tmp_path / "mine").dir == tmp_path / "mine"


def test_a_device_trains_the_models_it_was_configured_for(own_networks):
    name, _ = own_networks
    grid = federation(4)
    for node in grid.nodes:
        node.equipment = replace(node.equipment, models=("other:net", name))
    with trusting(["networks_of_a_device"]):  # on the server
        sim = simulation(grid, model__name=name)
    assert sim.step()["devices"] == [0, 1, 2, 3]
    assert trusted() == ()


def test_a_device_refuses_other_models_and_says_how_to_allow_them(own_networks, caplog):
    name, marker = own_networks
    with trusting(["networks_of_a_device"]):
        sim = simulation(federation(4), model__name=name)
    sys.modules.pop("networks_of_a_device")
    marker.unlink()
    with pytest.raises(RunError, match=r"does not accept model .*small'; .* models in its node co"):
        sim.step()
    assert not marker.exists()  # the device did not even import it


@pytest.mark.parametrize(
    "hostile",
    [
        {"model": {"name": "os:system", "options": {"command": "touch {trace}"}}},
        {"model": {"name": "subprocess:getoutput", "options": {"cmd": "touch {trace}"}}},
        {"model": {"options": {"channels": [30_000, 30_000, 64]}}},
        {"model": {"options": {"channels": [10**30, 4, 4]}}},
        {"model": {"widths": [(k + 1) / 1000 for k in range(1000)]}},
        {"training": {"steps": 10**15}},
        {"training": {"steps": None, "epochs": 10**9}},
        {"training": {"steps": 9_999_999, "batch_size": 9_999_999}},
        {"federation": {"devices": 10**12}},
        {"federation": {"devices": 2}},
        {"data": {"dataset": "{folder}"}},
        {"data": {"shards_per_device": 10**12, "partition": "shards"}},
    ],
    ids=str,
)
def test_an_order_cannot_make_a_device_run_code_read_folders_or_fill_its_memory(hostile, tmp_path):
    """What a server sends that is not slimfl's: the description is the attacker's."""
    save(tmp_path, DATASET.train, DATASET.test)
    trace = tmp_path / "trace"
    sim = simulation(federation(4))
    order = sim.engine.order(1, sim.global_model, tasks_of(sim, [3])[0])
    tree = experiment().model_dump(mode="json", exclude_none=True)
    for section, values in hostile.items():
        for key, value in values.items():
            if isinstance(value, str):
                value = value.format(folder=tmp_path, trace=trace)
            if isinstance(value, dict):
                value = {
                    k: v.format(trace=trace) if isinstance(v, str) else v for k, v in value.items()
                }
            tree[section].pop(key, None)
            if value is not None:
                tree[section][key] = value
    order = replace(order, experiment=tomli_w.dumps(tree))
    workbench = Workbench()
    limit = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, limit[1]))
    try:
        with pytest.raises(RequestError) as caught:
            workbench.work(order, Equipment(number=3, models=("os:system", "my:net")))
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, limit)
    assert "\n" not in str(caught.value)
    assert not trace.exists()
