"""`slimfl link --waveform`: symbols, table and formula, and the gap between them."""

import json
import sys

import numpy as np
import pytest

from slimfl.cli import main, waveform_link
from slimfl.radio import Superposition, from_db
from slimfl.radio.waveform import table as cache
from slimfl.radio.waveform.code import Modem, code_of
from slimfl.radio.waveform.comparison import compare, exchange_blocks

SMALL = Modem(2, 128)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache.curve_of.cache_clear()
    yield
    cache.curve_of.cache_clear()


def test_links_side_by_side_do_not_disturb_each_other():
    """Hopeless, middling and good links in one batch: each delivers what it would alone."""
    coding = Superposition((1.0, 1.0), (0.8, 0.2))
    snr = np.array([from_db(db) for db in (-5, 8, 22, -5, 22, 8)])
    decoded, altered = exchange_blocks(
        code_of(SMALL, 104, 1.0), coding, snr, np.random.default_rng(0)
    )
    assert decoded.tolist() == [0, 1, 2, 0, 2, 1]
    assert altered == 0


def test_the_gap_brings_the_formula_to_the_symbols():
    found = compare(SMALL, 1.0, [(0.8, 0.2)], (10.0,), 100)
    assert found.altered_bits == 0
    # with 100 links in as many slices, only those near a threshold are a matter of luck
    np.testing.assert_allclose(found.table, found.symbols, atol=0.06)
    assert (found.formula > found.symbols).all()
    gap_db = found.fitted_gap_db()
    assert 0.8 < gap_db < 3.5
    assert np.abs(found.with_gap(gap_db) - found.symbols).max() < 0.05


def test_the_command_prints_the_comparison(monkeypatch, capsys):
    monkeypatch.setattr(waveform_link, "SNR_DB", (10.0,))
    monkeypatch.setattr(waveform_link, "SHARES", (0.3, 0.8))  # 0.3 drowns and is left out
    monkeypatch.setattr(waveform_link, "MODULATIONS", (2,))
    monkeypatch.setattr(waveform_link, "BLOCK_BITS", 128)
    monkeypatch.setattr(cache, "BLOCKS", 8)
    arguments = ["slimfl", "link", "--waveform", "--spectral-efficiency", "1", "--draws", "12"]
    for extra in (["--json"], []):
        monkeypatch.setattr(sys, "argv", arguments + extra)
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code in (0, None)
        printed = capsys.readouterr().out
        if extra:
            [document] = json.loads(printed)["waveform"]
            assert [point["split"] for point in document["points"]] == [[0.8, 0.2]] * 2
            assert document["links_per_point"] == 12
        else:
            assert "4-QAM at code rate 0.615" in printed
            assert "One SINR gap of" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--spectral-efficiency", "1,1.2"], "one rate"),
        (["--spectral-efficiency", "6"], "can be decoded"),
        (["--spectral-efficiency", "0.3"], "raise radio.spectral_efficiency"),
    ],
)
def test_what_cannot_be_compared_is_refused(monkeypatch, capsys, arguments, words):
    monkeypatch.setattr(sys, "argv", ["slimfl", "link", "--waveform", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert words in " ".join(capsys.readouterr().err.split())
