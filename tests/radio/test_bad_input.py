"""Wrong radio settings end with status 2 and one sentence that names the key or what to change."""

import sys

import pytest

from slimfl.cli import main
from slimfl.errors import RequestError
from slimfl.experiment import build
from tests import asking

NAN = float("nan")

WRONG = {
    "nakagami below a half": ({"fading": "nakagami", "nakagami_m": 0.4}, "nakagami_m"),
    "no such fading": ({"fading": "rice"}, "rician"),
    "correlation without a process": ({"fading_correlation": 0.5}, "fading_process"),
    "a process without correlation": ({"fading_process": "ar1"}, "one of them"),
    "both": (
        {"fading_process": "ar1", "fading_correlation": 0.5, "doppler_hz": 1.0},
        "one of them",
    ),
    "jakes without doppler": ({"fading_process": "jakes"}, "doppler_hz"),
    "noise twice": ({"noise_density_dbm_hz": -174, "noise_dbm": -40}, "not both"),
    "noise and a channel": ({"noise_density_dbm_hz": -174, "channel": "good"}, "not both"),
    "too near for 3gpp": ({"path_loss": "umi", "distance_m": 3}, "from 10 to 5000"),
    "too high for 3gpp": ({"path_loss": "uma", "device_height_m": 20}, "device_height_m"),
    "residual without superposition": (
        {"residual_interference": 0.1, "multiplexing": "orthogonal-energy"},
        "multiplexing",
    ),
    "symbols and a numeric split": (
        {"decoder": "table", "split": "optimal-numeric"},
        "give radio.split",
    ),
    "symbols and what is left of them": (
        {"decoder": "waveform", "residual_interference": 0.01},
        "give radio.split",
    ),
    "a rate that follows, and a gap": (
        {"decoder": "gap", "sinr_gap_db": 3, "model": "rate-adaptive"},
        'radio.decoder = "outage"',
    ),
    "a rate that follows, and attempts": (
        {"max_attempts": 4, "model": "rate-adaptive"},
        "radio.max_attempts = 1",
    ),
    "a split per device in a shadow": (
        {"split": "per-device", "shadowing_db": 4},
        "radio.shadowing_db = 0",
    ),
    "a learned split in 3gpp's own shadow": (
        {"split": "learned", "path_loss": "uma"},
        "radio.shadowing_db = 0",
    ),
    "symbols of short parameters": (
        {"decoder": "waveform", "bits_per_parameter": 16},
        "bits_per_parameter",
    ),
    "symbols in pairs": ({"decoder": "waveform", "users_per_slot": 2}, "users_per_slot"),
    "a table without its decoder": ({"decoder_table": [[1.0, 0.5]]}, "decoder_table"),
    "codewords without their decoder": ({"codeword_symbols": 100}, "decoder"),
    "rates by size and by hand": (
        {"rates": "by-size", "spectral_efficiency": [1.0, 2.0]},
        "spectral_efficiency",
    ),
    "a disc for devices at rest": ({"area_radius_m": 50}, "speed_m_s"),
    "pairs in turn": (
        {"users_per_slot": 2, "multiplexing": "orthogonal-airtime"},
        "users_per_slot",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_section_is_refused_in_one_sentence(name):
    keys, words = WRONG[name]
    with pytest.raises(RequestError) as caught:
        build({"radio": keys})
    message = str(caught.value)
    assert words in message
    assert "\n" not in message
    assert len(message) < 300


ON_THE_COMMAND_LINE = {
    "correlation": (["radio.fading_process=ar1", "radio.fading_correlation=1.2"], "correlation"),
    "split": (["radio.rates=equal", "radio.split=0.6,0.4"], "drowns in the segments after it"),
    "residual": (["radio.split=0.8,0.2", "radio.residual_interference=0.2"], "segment 2 drowns"),
    "hopeless residual": (
        ["radio.split=0.8,0.2", "radio.residual_interference=0.9"],
        "no split would work",
    ),
    "hopeless residual, any split": (["radio.residual_interference=0.9"], "no power split"),
    "table": (["radio.decoder=table", "radio.decoder_table=nowhere.csv"], "nowhere.csv"),
    "unreachable outage": (
        [
            "radio.split=optimal-numeric",
            "radio.split_objective=first-outage",
            "radio.first_outage=0.0001",
        ],
        "segment 1 has an outage of at least",
    ),
    "infeasible by size": (
        [
            "radio.rates=by-size",
            "radio.split=0.45,0.55",
            "data.dataset=synthetic",
            "data.train_samples=200",
            "rounds=1",
        ],
        "segment 1 drowns",
    ),
}


@pytest.mark.parametrize("name", ON_THE_COMMAND_LINE)
def test_on_the_command_line_it_is_status_2(name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    overrides, words = ON_THE_COMMAND_LINE[name]
    arguments = ["slimfl", "run", "--out", str(tmp_path / "out")]
    for override in overrides:
        arguments += ["--set", override]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as ended:
        main()
    error = capsys.readouterr().err
    assert ended.value.code == 2
    assert words in error
    assert "Traceback" not in error


def test_an_override_of_the_noise_replaces_what_the_file_says(tmp_path):
    file = tmp_path / "lab.toml"
    file.write_text("[radio]\nnoise_density_dbm_hz = -120\n")
    [by_power] = asking.load(file, ["radio.noise_dbm=-45"])
    assert by_power.radio.noise == -45
    [by_name] = asking.load(file, ["radio.channel=good"])
    assert by_name.radio.noise == -51
    file.write_text('[radio]\nchannel = "good"\n')
    [by_density] = asking.load(file, ["radio.noise_density_dbm_hz=-120", "radio.bandwidth_hz=1e6"])
    assert by_density.radio.noise == pytest.approx(-60)
