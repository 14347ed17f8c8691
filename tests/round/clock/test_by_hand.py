"""Time and energy, added up by hand from metrics.jsonl, devices.csv and the experiment."""

import csv
import json

import pytest

import slimfl
from slimfl.devices.computing_energy import ENERGY_PRESETS
from slimfl.nn import build, multiply_adds, segments
from tests import asking

WIDTHS = (0.5, 1.0)
DOWNLINK, EFFICIENCY, CIRCUIT_W = 2e6, 0.4, 0.1
CLASSES = [
    {
        "name": "slow",
        "share": 0.5,
        "max_width": 0.5,
        "macs_per_s": {"distribution": "uniform", "low": 4e7, "high": 9e7},
        "battery_j": {"distribution": "uniform", "low": 0.0008, "high": 0.004},
        "energy": "kappa-1e-28",
    },
    {"name": "fast", "share": 0.5, "macs_per_s": 4e8, "energy": "raspberry-pi-4"},
]
#: Joule per multiply-add, typed in anew.
JOULE = {
    "default": lambda speed: (0.9 + 3.7) * 1e-12,
    "kappa-1e-28": lambda speed: 1e-28 * speed**2,
    "raspberry-pi-4": lambda speed: 5.14 / speed,
}
COMMON = {
    "rounds": 10,
    "threads": 1,
    "data__dataset": "synthetic",
    "data__train_samples": 500,
    "data__test_samples": 30,
    "training__epochs": 2,
    "federation__devices": 12,
    "federation__dropout": 0.1,
    "population__classes": CLASSES,
    "radio__rates": "equal",
    "time__download_bits_per_s": DOWNLINK,
    "energy__amplifier_efficiency": EFFICIENCY,
    "energy__circuit_power_w": CIRCUIT_W,
}


@pytest.fixture(scope="module")
def network():
    made = build("ul-mobilenet", {}, in_channels=1, classes=10, initialisation="he", seed=0)
    # independent of the run: what the paper's network costs, and its segments
    macs = [multiply_adds(made, width, (1, 12, 12)) for width in WIDTHS]
    bits = [32 * size for size in segments(made, WIDTHS).sizes.tolist()]
    return macs, bits


def read(folder):
    lines = [json.loads(text) for text in (folder / "metrics.jsonl").read_text().splitlines()]
    with (folder / "devices.csv").open() as file:
        devices = {int(row["device"]): row for row in csv.DictReader(file)}
    return lines, devices


def task(row, macs, bits):
    """(seconds until trained, seconds until sent, compute joule, transmit joule) of one device."""
    speed, samples = float(row["macs_per_s"]), int(row["samples"])
    widths = [i for i, width in enumerate(WIDTHS) if width <= float(row["max_width"])]
    work = 3 * 2 * samples * sum(macs[i] for i in widths)
    down = sum(bits[: widths[-1] + 1]) / DOWNLINK
    airtime = max(bits[i] for i in widths) / (1.5 * 75e6)
    power = 10 ** ((float(row["power_dbm"]) - 30) / 10)
    transmit = airtime * (power / EFFICIENCY + CIRCUIT_W)
    trained = down + work / speed
    return down, trained, trained + airtime, work * JOULE[row["energy"]](speed), transmit


def share(elapsed, whole):
    return min(max(elapsed / whole, 0.0), 1.0)


@pytest.mark.parametrize("deadline", [None, 0.6])
def test_time_energy_and_batteries(tmp_path, network, deadline):
    limit = {"time__mode": "deadline", "time__deadline_s": deadline} if deadline else {}
    asking.run(out=tmp_path, **COMMON, **limit)
    lines, devices = read(tmp_path)
    battery = {k: float(row["battery_j"]) for k, row in devices.items()}
    clock, gone, reasons = 0.0, set(), set()
    for line in lines:
        silent = {*line["missing"].get("no answer", [])}
        compute = transmit = cut_off = 0.0
        in_time, late, died, finished = [], [], [], {}
        for device, row in devices.items():
            if device in silent or device in gone:
                continue
            down, trained, sent, compute_j, transmit_j = task(row, *network)
            enough = battery[device] >= compute_j + transmit_j
            if not enough and deadline is None:
                compute += min(compute_j, battery[device])
                cut_off += max(0.0, battery[device] - compute_j)
                battery[device] = 0.0
                died.append(device)
                continue
            if enough and (deadline is None or sent <= deadline):
                in_time.append(device)
                finished[device] = sent
                compute += compute_j
                transmit += transmit_j
                battery[device] -= compute_j + transmit_j
                continue
            used_compute = compute_j * share(deadline - down, trained - down)
            used_transmit = transmit_j * share(deadline - trained, sent - trained)
            if used_compute + used_transmit >= battery[device]:
                used_compute = min(used_compute, battery[device])
                used_transmit = battery[device] - used_compute
                died.append(device)
                battery[device] = 0.0
            else:
                late.append(device)
                battery[device] -= used_compute + used_transmit
            compute += used_compute
            cut_off += used_transmit
        waited = bool(late or died) and deadline is not None
        duration = deadline if waited else max(finished.values(), default=0.0)
        clock += duration
        assert line["devices"] == in_time
        assert line["missing"].get("deadline", []) == late
        assert line["missing"].get("battery", []) == sorted([*gone, *died])
        assert line["duration_s"] == pytest.approx(duration, rel=1e-9)
        assert line["clock_s"] == pytest.approx(clock, rel=1e-9)
        assert line["compute_energy_j"] == pytest.approx(compute, rel=1e-9)
        assert line["energy_j"] == pytest.approx(transmit, rel=1e-9)
        assert line.get("cut_off_energy_j", 0.0) == pytest.approx(cut_off, rel=1e-9, abs=1e-15)
        assert line["finished_s"] == pytest.approx([finished[k] for k in in_time], rel=1e-9)
        for device, left in zip(line["drained"], line["battery_left_j"], strict=True):
            assert left == pytest.approx(battery[device], rel=1e-9, abs=1e-12)
        gone |= {k for k, left in battery.items() if left <= 0}
        assert line["empty"] == len(gone)
        reasons |= {*line["missing"]}
    assert "battery" in reasons
    assert ("deadline" in reasons) == (deadline is not None)


@pytest.mark.parametrize("late", [False, True])
def test_a_pair_shares_a_slot_but_each_device_sends_for_all_of_it(network, late):
    """Five devices: two pairs, and one alone. Computing and downloading take no time."""
    _, bits = network
    airtime_s, power_w = max(bits) / (1.5 * 75e6), 10 ** ((23 - 30) / 10)
    alike = {key: value for key, value in COMMON.items() if key.startswith(("data", "training"))}
    limit = {"time__mode": "deadline", "time__deadline_s": 0.75 * airtime_s} if late else {}
    [line] = asking.run(
        rounds=1, threads=1, federation__devices=5, radio__users_per_slot=2, radio__rates="equal",
        energy__amplifier_efficiency=EFFICIENCY, energy__circuit_power_w=CIRCUIT_W,
        **alike, **limit,
    ).lines  # fmt: skip
    transmit_j = 5 * airtime_s * (power_w / EFFICIENCY + CIRCUIT_W)
    if late:
        assert line.missing["deadline"] == [0, 1, 2, 3, 4]
        assert line.cut_off_energy_j == pytest.approx(0.75 * transmit_j, rel=1e-9)
    else:
        assert line.duration_s == pytest.approx(airtime_s, rel=1e-9)
        assert line.airtime_s == pytest.approx(3 * airtime_s, rel=1e-9)
        assert line.energy_j == pytest.approx(transmit_j, rel=1e-9)


def test_a_device_whose_battery_ends_is_never_heard_again(tmp_path):
    """By any method and mode; the record says so by device and round."""
    for mode in ({}, {"rounds": 60, "time__mode": "asynchronous", "time__buffer": 3}):
        folder = tmp_path / str(len(mode))
        asking.run(out=folder, **{**COMMON, **mode})
        lines, devices = read(folder)
        empty = set()
        for line in lines:
            assert not empty & {*line["devices"]}
            charge = dict(zip(line["drained"], line["battery_left_j"], strict=True))
            empty |= {device for device, left in charge.items() if left == 0}
        assert empty
        assert all(float(devices[device]["battery_j"]) < 1 for device in empty)


def test_when_all_are_empty_the_run_ends(tmp_path):
    small = [{"name": "cell", "macs_per_s": 1e8, "battery_j": 0.004, "energy": "kappa-1e-27"}]
    for mode in ({}, {"time__mode": "asynchronous"}):
        changed = {**COMMON, "population__classes": small, "rounds": 50, **mode}
        result = asking.run(out=tmp_path / str(len(mode)), **changed)
        assert result.lines[-1].stopped_by == "no device left"
        assert result.lines[-1].empty == 12
        assert len(result.lines) < 50
        assert slimfl.resume(tmp_path / str(len(mode))).lines == result.lines


@pytest.mark.parametrize("preset", [name for name in ENERGY_PRESETS if name != "none"])
def test_methods_compare_alike_whatever_the_preset(preset):
    """The ratio of computing energy of two widths, in whole runs, is that of multiply-adds."""
    same = {
        **COMMON,
        "rounds": 1,
        "population__classes": [{"name": "one", "macs_per_s": 3e8}],
        "energy__preset": preset,
    }
    narrow, wide = (asking.run(method=f"vanilla-{width}x", **same).lines[0] for width in WIDTHS)
    assert wide.compute_energy_j / narrow.compute_energy_j == pytest.approx(
        wide.multiply_adds / narrow.multiply_adds, rel=1e-12
    )


@pytest.mark.parametrize("mode", ["first", "over-commit"])
def test_the_first_are_enough(mode, tmp_path):
    """The server hears the fastest; who comes after them is late."""
    changed = {
        **COMMON,
        "federation__dropout": 0.0,
        "radio__model": "rate-adaptive",
        "population__classes": [
            {"name": "a", "macs_per_s": {"distribution": "uniform", "low": 1e8, "high": 9e8}}
        ],
        "time__mode": mode,
    }
    changed |= {"time__first": 5} if mode == "first" else {"time__over_commit": 2.0}
    changed |= {} if mode == "first" else {"federation__participation": 5 / 12}
    result = asking.run(out=tmp_path, **changed)
    for line in result.lines:
        assert len(line.devices) == 5
        late = line.missing["deadline"]
        assert len(late) == (7 if mode == "first" else 5)
        assert line.dropped_out == late
        assert line.duration_s == pytest.approx(max(line.finished_s))
