"""Runs whose devices differ: deliveries, reasons for missing ones, and reuse of the devices."""

import json
import shutil

import numpy as np
import pytest

import slimfl
from slimfl.errors import RequestError
from slimfl.radio import outage_channel
from slimfl.round import RunFolder, Simulation
from tests import asking
from tests.round.test_plan import Counting

RING = {"distribution": "disc", "radius_m": 250.0, "inner_m": 35.0}
MIXED = [
    {"name": "capped", "share": 0.5, "max_width": 0.5, "distance_m": RING, "availability": 0.8},
    {"name": "able", "share": 0.5, "distance_m": RING, "data_share": 3.0},
]
SMALL = {
    "data__dataset": "synthetic",
    "federation__devices": 12,
    "training__steps": 1,
    "rounds": 4,
}


def run(method="slimfl", **values):
    return asking.run(method=method, **{**SMALL, "population__classes": MIXED, **values})


def simulation(**values):
    return Simulation(asking.load(**{**SMALL, "population__classes": MIXED, **values})[0])


def without_times(lines):
    return [{k: v for k, v in line.as_json().items() if k != "seconds"} for line in lines]


def test_capped_devices_train_and_send_segment_1_alone():
    sim = simulation()
    plan = sim.plan()
    capped = plan.devices.max_width == 0
    assert 0 < capped.sum() < len(plan)
    for is_capped, assignment, sent in zip(capped, plan.work, plan.signals, strict=True):
        assert assignment.widths == ((0,) if is_capped else (0, 1))
        assert sent.messages == (((0,),) if is_capped else ((0,), (1,)))
    delivered = {}
    for _ in range(30):
        record = sim.step()
        for device, segments in zip(record.devices, record.decoded, strict=True):
            delivered.setdefault(device, set()).add(segments)
    able = np.flatnonzero(sim.setting.population.max_width == 1).tolist()
    assert all(max(seen) <= 1 for device, seen in delivered.items() if device not in able)
    assert any(2 in delivered[device] for device in able)


@pytest.mark.parametrize("method", ["heterofl", "slimfl"])
@pytest.mark.parametrize("seed", range(4))
def test_the_papers_computing_cost_is_the_mean_over_devices(method, seed):
    """Table V counts one forward pass at every trained width, in millions of multiply-adds."""
    classes = [
        {"name": "weak", "share": 0.9, "max_width": 0.5},
        {"name": "strong", "share": 0.1, "max_width": 1.0},
    ]
    sim = simulation(method=method, seed=seed, federation__devices=10, population__classes=classes)
    weak, strong = sim.setting.multiply_adds[0], sim.setting.multiply_adds[1]
    strong += weak if method == "slimfl" else 0  # SlimFL trains the widths below its widest, too
    assert sim.step().paper_mflops == pytest.approx((9 * weak + strong) / 10 / 1e6, rel=1e-12)


def test_equal_devices_have_the_papers_computing_cost_to_the_last_digit():
    for devices in (3, 7, 10):
        sim = simulation(federation__devices=devices, population__classes=[])
        assert sim.step().paper_mflops == sum(sim.setting.multiply_adds) / 1e6


def test_vanilla_of_the_full_width_is_for_capable_devices():
    sim = simulation(method="vanilla-1.0x")
    able = {*np.flatnonzero(sim.setting.population.max_width == 1).tolist()}
    record = sim.step()
    assert {*record.devices} == able
    assert {*record.missing["not able"]} | {*record.missing.get("offline", [])} == (
        {*range(12)} - able
    )


def test_a_fixed_width_is_checked_before_the_run():
    with pytest.raises(RequestError, match=r"no width 0.7"):
        simulation(population__width="fixed", population__fixed_width=0.7)


def test_every_absence_has_one_reason():
    sim = simulation(federation__dropout=0.2)
    for _ in range(10):
        record = sim.step()
        named = {device: why for why, devices in record.missing.items() for device in devices}
        assert {*record.dropped_out} == {
            d for d, why in named.items() if why in ("offline", "no answer")
        }
        widest = sim.setting.population.max_width
        for device, decoded in zip(record.devices, record.decoded, strict=True):
            sent = int(widest[device]) + 1
            expected = None if decoded == sent else f"outage of segment {decoded + 1}"
            assert named.get(device) == expected


def test_two_methods_have_the_same_devices(tmp_path):
    for method in ("slimfl", "vanilla-0.5x"):
        run(method, out=tmp_path / method)
    tables = [(tmp_path / m / "devices.csv").read_bytes() for m in ("slimfl", "vanilla-0.5x")]
    assert tables[0] == tables[1]
    gains = [
        {(line.round, d): g for line in RunFolder(tmp_path / m).metrics()
         for d, g in zip(line.devices, line.gains, strict=True)}
        for m in ("slimfl", "vanilla-0.5x")
    ]  # fmt: skip
    assert gains[0] == gains[1]


def test_a_run_is_repeated_with_the_devices_of_its_folder(tmp_path):
    drawn = run(out=tmp_path / "drawn", radio__split="per-device")
    again = asking.run(
        out=tmp_path / "again",
        population__file=tmp_path / "drawn" / "devices.csv",
        radio__split="per-device",
        **SMALL,
    )
    assert without_times(again.lines) == without_times(drawn.lines)
    copies = [tmp_path / name / "devices.csv" for name in ("drawn", "again")]
    assert copies[0].read_bytes() == copies[1].read_bytes()


def test_a_run_from_a_file_resumes_with_that_file_or_not_at_all(tmp_path):
    run(out=tmp_path / "drawn")
    table = tmp_path / "table.csv"
    shutil.copy(tmp_path / "drawn" / "devices.csv", table)
    values = {**SMALL, "population__file": table}
    whole = asking.run(out=tmp_path / "whole", **values)
    asking.run(out=tmp_path / "part", **{**values, "rounds": 2})
    text = (tmp_path / "part" / "experiment.toml").read_text()
    (tmp_path / "part" / "experiment.toml").write_text(text.replace("rounds = 2", "rounds = 4"))
    table.write_text(table.read_text().replace("0.5,inf", "1.0,inf"))
    with pytest.raises(RequestError, match=r"other devices.*devices\.csv"):
        slimfl.resume(tmp_path / "part")
    moved = text.replace("rounds = 2", "rounds = 4").replace(
        json.dumps(str(table)), json.dumps(str(tmp_path / "part" / "devices.csv"))
    )
    (tmp_path / "part" / "experiment.toml").write_text(moved)
    assert without_times(slimfl.resume(tmp_path / "part").lines) == without_times(whole.lines)


def test_alike_devices_are_recorded_as_ever(tmp_path):
    lines = asking.run(out=tmp_path / "run", **SMALL).lines
    assert not {"missing", "label_accuracy"} & {*lines[0].keys()}
    assert not (tmp_path / "run" / "devices.csv").exists()


def test_a_population_that_is_the_papers_gives_the_papers_numbers():
    """Classes that say what the defaults say: the same rounds, to the last digit."""
    plain = asking.run(**SMALL)
    same = asking.run(population__classes=[{"name": "all", "distance_m": 100.0}], **SMALL)
    for ours, papers in zip(same.lines, plain.lines, strict=True):
        new = {"missing", "label_accuracy", "seconds", "loss"}  # losses are summed label by label
        assert {**ours.as_json(), **dict.fromkeys(new)} == {
            **papers.as_json(), **dict.fromkeys(new)
        }  # fmt: skip
    assert (same.parameters == plain.parameters).all()


@pytest.mark.parametrize("engine", ["torch", "native"])
def test_accuracies_per_label_add_up(engine):
    sim = simulation(engine=engine)
    for _ in range(3):
        record = sim.step()
    held = np.bincount(sim.setting.dataset.test.labels, minlength=10)
    plain = sim.engine.evaluate(sim.global_model, (0, 1))
    for i, width in enumerate(("0.5x", "1.0x")):
        assert np.dot(record.label_accuracy[width], held) / held.sum() == pytest.approx(
            record.accuracy[width]
        )
        assert record.accuracy[width] == plain[i].accuracy
        assert record.loss[width] == pytest.approx(plain[i].loss)
        assert plain[i].correct_by_label is None


def test_labels_are_counted_as_a_plain_loop_does():
    sim = simulation(engine="torch")
    sim.step()
    score = sim.engine.evaluate(sim.global_model, (1,), by_label=True)[0]
    network = sim.trained_network().eval()
    import torch

    mean, deviation = sim.setting.dataset.normalisation("standard")
    images = torch.from_numpy(sim.setting.dataset.test.images.astype(np.float32) / 255)
    images = (images - torch.from_numpy(mean)) / torch.from_numpy(deviation)
    images = images.permute(0, 3, 1, 2)
    with torch.no_grad():
        answers = network(images).argmax(1).numpy()
    counts = [0] * 10
    for answer, label in zip(answers, sim.setting.dataset.test.labels, strict=True):
        counts[label] += int(answer == label)
    assert list(score.correct_by_label) == counts


def test_shares_of_the_data_are_kept():
    sim = simulation(data__alpha=1000.0)
    sizes, able = sim.setting.population.samples, sim.setting.population.max_width == 1
    assert sizes[able].mean() / sizes[~able].mean() == pytest.approx(3, rel=0.1)
    sim = simulation(data__partition="iid")
    expected = np.where(sim.setting.population.max_width == 1, 2000 / 8, 2000 / 24)
    assert sim.setting.population.samples.tolist() == pytest.approx(expected.tolist(), abs=1)
    with pytest.raises(RequestError, match="data_share needs"):
        simulation(data__partition="shards")


def test_a_split_per_device_needs_to_know_the_gains():
    experiment = asking.load(**{**SMALL, "radio__split": "per-device"})[0]
    with pytest.raises(RequestError, match="noise_to_power"):
        Simulation(experiment, channel=Counting(outage_channel(experiment.radio)))
