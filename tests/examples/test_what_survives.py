"""The tables on the page are those that the example prints, and they are right."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from slimfl import radio
from slimfl.devices import Population
from slimfl.experiment import RadioSection

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/what_survives.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("what_survives", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_page_has_the_tables_that_the_example_prints():
    done = subprocess.run(
        [sys.executable, EXAMPLE], capture_output=True, text=True, timeout=120, check=True
    )
    printed = [part for part in done.stdout.split("\n\n") if part.startswith("|")]
    assert len(printed) == 6
    page = (ROOT / "docs/howto/what-survives.md").read_text()
    for table in printed[:4]:  # the costs of the good channel are in words
        assert table.strip() in page


def test_json_has_every_number(monkeypatch, capsys, example):
    monkeypatch.setattr(example, "LINKS", {"the paper's": {}})
    monkeypatch.setattr(sys, "argv", ["what_survives.py", "--json"])
    example.main()
    found = json.loads(capsys.readouterr().out)
    ratio = 10 ** ((-40 - 23) / 10) * 100**2.5
    whole = found["poor"]["the paper's"]["Vanilla 1.0x"]
    assert whole["p"] == [pytest.approx(np.exp(-7 * ratio))]
    # 2 p segments in the time of one segment, with 200 mW
    seconds = 86_344 / (1.5 * 75e6)
    assert whole["per_second"] == pytest.approx(2 * np.exp(-7 * ratio) / seconds)
    assert whole["per_joule"] == pytest.approx(whole["per_second"] / 10 ** ((23 - 30) / 10))


@pytest.mark.parametrize("keys", [{}, {"max_attempts": 3}, {"fading": "rician"}], ids=str)
@pytest.mark.parametrize("method", ["SlimFL", "Vanilla 1.0x", "in turn, same energy"])
def test_what_is_delivered_per_joule_is_what_a_channel_delivers(keys, method, example):
    """The channel of a run, with its own attempts, airtime and energy, for many devices."""
    messages, changed = example.METHODS[method]
    expected = example.described("poor", keys, messages, changed)
    section = RadioSection(channel="poor", split="optimal-numeric", **keys, **changed)
    channel, count = radio.outage_channel(section), 40_000
    held = np.ones(count, np.int64)
    population = Population.alike(held, max_width=1, power_dbm=23.0, distance_m=100.0)
    sent = radio.signal(section, messages, 2, example.BITS)
    links, _ = channel.links(channel.start(population, 1), 1, population, 1)
    got = channel.receive(links, [sent] * count, None)
    segments = np.array([len(sent.segments_decoded(n)) for n in got.decoded.tolist()])
    error = 4 * 2 / np.sqrt(count)  # no device delivers more than two
    assert segments.mean() == pytest.approx(expected["delivered"], abs=error)
    assert got.attempts.mean() == pytest.approx(expected["attempts"], abs=error)
    assert segments.sum() / got.energy_j.sum() == pytest.approx(expected["per_joule"], rel=error)
    assert segments.sum() / got.airtime_s.sum() == pytest.approx(expected["per_second"], rel=error)
