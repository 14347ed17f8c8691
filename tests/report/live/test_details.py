"""The heat map and the gains of one run, against what its lines and equation (5) say."""

import math

import pytest

from slimfl.errors import RequestError
from slimfl.report.live.board import Board
from slimfl.report.live.details import MOST_BYTES, details_of, thresholds
from slimfl.round import Simulation, run
from tests import asking
from tests.hand_made_runs import line
from tests.report.live.pages import read_all
from tests.report.live.serving import append

ACCURACY = {"0.5x": 0.5, "1.0x": 0.5}

SIZES = {"segment_bits": [48_960.0, 97_792.0]}


def followed(path):
    [found] = read_all(Board([path])).runs.values()
    return found


@pytest.fixture
def mixed(make_run):
    """Three devices in three rounds: all kinds of fates."""
    made = make_run(curves={}, experiment={"rounds": 9, "federation__devices": 3})
    append(made.path, line(1, ACCURACY, devices=[0, 2], gains=[2.0, 0.01], decoded=[2, 0]))
    append(
        made.path,
        line(2, {}, devices=[1], gains=[0.3], decoded=[1], dropped_out=[0], delivered=[1, 0]),
    )
    append(made.path, line(3, {}, devices=[0, 1, 2], gains=None, decoded=[2, 2, 1], refused=[1]))
    return made.path


def test_every_device_of_every_round(mixed):
    found = details_of(followed(mixed))
    heat = found["heat"]
    names = [[heat["words"][int(code)] for code in codes] for codes in heat["cells"]]
    assert names == [  # of each device in three rounds
        ["segments 1–2", "no answer", "segments 1–2"],
        ["not asked", "segment 1", "refused by the server"],
        ["nothing", "not asked", "segment 1"],
    ]
    assert found["gains"] == [[2.0, None, 0.01], [None, 0.3, None], []]
    assert (found["from"], heat["devices"], heat["rounds"]) == (0, [0, 1, 2], [1, 2, 3])
    assert len(heat["colours"]) == len(heat["words"])


def test_only_as_much_as_can_be_drawn(mixed, monkeypatch):
    monkeypatch.setattr("slimfl.report.live.details.POINTS", 2)
    assert details_of(followed(mixed))["from"] == 1
    monkeypatch.setattr("slimfl.report.live.details.MOST_BYTES", 1)
    assert details_of(followed(mixed))["from"] == 3
    assert MOST_BYTES < 10**8


def test_metrics_that_are_cut_in_this_moment(mixed):
    run_of = followed(mixed)
    (mixed / "metrics.jsonl").write_bytes(b"")
    assert details_of(run_of)["heat"]["rounds"] == []


def test_thresholds_are_those_that_decide(tmp_path):
    """In a real run every device has decoded as many messages as its gain reaches thresholds."""
    for method in ("slimfl", "vanilla-1.0x"):
        (experiment,) = asking.load(
            method=method, rounds=3, data__dataset="synthetic", data__train_samples=200,
            data__test_samples=20, data__min_samples=1, training__steps=1, federation__devices=20,
        )  # fmt: skip
        simulation = Simulation(experiment)
        found = thresholds(experiment, simulation.setting.provenance())
        lines = run(simulation)
        reached = [
            [
                max((t["segments"] for t in found if gain >= t["gain"]), default=0)
                for gain in each.gains
            ]
            for each in lines
        ]
        assert reached == [each.decoded for each in lines]
        assert len({count for row in reached for count in row}) > 1


def test_the_thresholds_of_the_paper():
    """u/W = 1.5 each, P = 23 dBm, d = 100 m, beta = 2.5, -30 dBm, split 0.8 to 0.2."""
    (experiment,) = asking.load(radio__noise_dbm=-30.0, radio__rates="equal")
    radio = experiment.radio
    c = (
        10 ** ((radio.noise_dbm - radio.power_dbm) / 10)
        * radio.distance_m**radio.path_loss_exponent
    )
    rate = radio.spectral_efficiency
    need = 2 ** (rate[0] if isinstance(rate, tuple) else rate) - 1
    expected = [c * need / (0.8 - need * 0.2), c * need / 0.2]
    found = thresholds(experiment, {})
    assert [each["segments"] for each in found] == [1, 2]
    assert all(math.isclose(f["gain"], e) for f, e in zip(found, expected, strict=True))


def test_what_a_folder_names_is_not_imported(tmp_path):
    for changes in ({"radio__model": "evil.module:Channel"}, {"method": "evil.module:Method"}):
        (experiment,) = asking.load(None, **changes)
        assert thresholds(experiment, SIZES) == []


def test_an_unreadable_run_has_no_details(tmp_path):
    (tmp_path / "experiment.toml").write_text("[")
    with pytest.raises(RequestError, match="cannot be shown"):
        details_of(followed(tmp_path))


@pytest.mark.parametrize(
    "unequal",
    [{"population__preset": "cell"}, {"radio__split": "per-device"}, {"radio__max_attempts": 2},
     {"radio__shadowing_db": 6.0}, {"radio__fading": "tdl-a"}],
)  # fmt: skip
def test_no_threshold_is_drawn_where_there_is_not_one_for_all(unequal):
    (alike,), (other,) = asking.load(None), asking.load(None, **unequal)
    assert len(thresholds(alike, SIZES)) == 2
    assert thresholds(other, SIZES) == []
    for unknown in ({}, {"segment_bits": [1.0]}, {"segment_bits": ["1.0", 2.0]}):
        assert thresholds(alike, unknown) == [], "rates follow sizes that the run did not record"
