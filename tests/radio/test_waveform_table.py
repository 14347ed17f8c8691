"""The table that is made of symbols: decoded as often, made once, kept on the disk."""

import json

import numpy as np
import pytest

from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio import Signal, Superposition, from_db, outage_link
from slimfl.radio.decoders import Outage, build_decoder
from slimfl.radio.waveform import table as cache
from slimfl.radio.waveform.code import Modem, code_of
from slimfl.radio.waveform.symbols import exchange
from slimfl.radio.waveform.table import BlockCurve, WaveformTable, fitted, measure

SMALL = Modem(bits_per_symbol=2, block_bits=128)
BOTH = Superposition((1.0, 1.0), (0.8, 0.2))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache.curve_of.cache_clear()
    yield
    cache.curve_of.cache_clear()


def test_a_curve_is_found_again_from_counts():
    points = np.linspace(1, 3, 11)
    true = BlockCurve(1.9, 0.31)
    passed = np.random.default_rng(0).binomial(2000, true.success(10 ** (points / 10)))
    found = fitted(points, passed, 2000)
    assert found.middle_db == pytest.approx(1.9, abs=0.02)
    assert found.width_db == pytest.approx(0.31, abs=0.02)


def test_what_is_never_decoded_has_no_middle():
    found = fitted(np.array([1.0, 2.0]), np.array([0, 0]), 10)
    assert found.success(np.array([0.0, 1e9])).tolist() == [0, 0]


def test_table_and_symbols_agree_within_binomial_error():
    """A message of one block and one of three, at gains where each is decoded sometimes."""
    table, draws, sizes = WaveformTable(SMALL), 80, (12, 36)
    random = np.random.default_rng(1)
    compared = 0
    for snr_db in (6.0, 9.8):
        snr = np.array([from_db(snr_db)])
        expected = table.probabilities(BOTH, [8.0 * size for size in sizes], snr)[0]
        counts = np.zeros(2)
        for _ in range(draws):
            payload = [random.integers(256, size=size, dtype=np.uint8) for size in sizes]
            arrived, _ = exchange(SMALL, Signal(((0,), (1,)), BOTH), payload, [snr], random)
            counts[: len(arrived)] += 1
        for p, count in zip(expected, counts, strict=True):
            compared += 0.1 < p < 0.9
            # both are measured: some points of 64 blocks each are near enough to tell the curve
            error = np.sqrt(p * (1 - p) * (1 / draws + 1 / (2 * cache.BLOCKS)))
            assert abs(count / draws - p) <= 4 * error + 3 / draws
    assert compared >= 2


def test_one_gap_fits_all_splits_of_a_modulation_and_code():
    """At rate 1 no layer is near the ratio that interference alone leaves it."""
    code = code_of(SMALL, 104, 1.0)
    middles = [
        measure(code, ((1 - share) / share,) if share < 1 else (), 16).middle_db
        for share in (0.7, 1.0)
    ]
    assert max(middles) - min(middles) < 0.4
    assert 0.8 < np.mean(middles) < 2.5  # Shannon's formula: 0 dB


def test_a_layer_that_interference_drowns_is_never_decoded():
    """SINR at most 0.7 / 0.3 = 3.7 dB, and 16-QAM at 1.5 bit/s/Hz needs more than 4."""
    code = code_of(Modem(4, 128), 104, 1.5)
    assert measure(code, (3 / 7,), 16).success(np.array([from_db(3.68)]))[0] < 0.05


def test_a_curve_is_measured_once_and_kept(monkeypatch, tmp_path):
    measured = []

    def count(code, interference, blocks):
        measured.append(interference)
        return BlockCurve(1.25, 0.5) if interference else BlockCurve(float("inf"), 1.0)

    monkeypatch.setattr(cache, "measure", count)
    table = WaveformTable(SMALL)
    first = table.probabilities(BOTH, (96.0, 96.0), np.array([3.0]))
    assert measured == [(0.25,), ()]
    cache.curve_of.cache_clear()
    np.testing.assert_array_equal(table.probabilities(BOTH, (96.0, 96.0), np.array([3.0])), first)
    # the same blocks in a longer message
    table.probabilities(BOTH, (960.0, 960.0), np.array([3.0]))
    assert len(measured) == 2
    files = sorted((tmp_path / "slimfl" / "waveform").iterdir())
    assert len(files) == 2
    for path in files:
        assert json.loads(path.read_text())["settings"]["payload_bits"] == 96
    # another code has a file of its own
    WaveformTable(Modem(2, 128, 7)).probabilities(BOTH, (96.0, 96.0), np.array([3.0]))
    assert len(measured) == 4


@pytest.mark.parametrize(
    "damage", ["", "{}", '{"settings": 1}', '{"middle_db": "x"}', "[1]", '{"width_db": NaN}']
)
def test_a_damaged_file_is_measured_again(monkeypatch, tmp_path, damage):
    monkeypatch.setattr(cache, "measure", lambda *_: BlockCurve(1.25, 0.5))
    code = code_of(SMALL, 96, 1.0)
    cache.curve_of(code, ())
    [path] = (tmp_path / "slimfl" / "waveform").iterdir()
    if damage.startswith('{"'):
        damage = json.dumps(json.loads(path.read_text()) | json.loads(damage))
    path.write_text(damage)
    cache.curve_of.cache_clear()
    assert cache.curve_of(code, ()) == BlockCurve(1.25, 0.5)


def test_a_cache_that_cannot_be_written_is_no_reason_to_stop(monkeypatch, tmp_path):
    (tmp_path / "slimfl").write_text("not a folder")
    monkeypatch.setattr(cache, "measure", lambda *_: BlockCurve(1.25, 0.5))
    assert cache.curve_of(code_of(SMALL, 96, 1.0), ()) == BlockCurve(1.25, 0.5)


def test_a_table_without_rows_is_made_of_symbols():
    section = RadioSection(decoder="table", modulation=2, block_bits=128)
    assert build_decoder(section) == WaveformTable(SMALL)
    with pytest.raises(RequestError, match="known in a run only"):
        outage_link(section).decoding_probabilities(BOTH)


# a gap


def test_a_gap_counts_against_interference_too(decode):
    """A receiver in watts whose rate is log2(1 + SINR / gap)."""
    gap = 10**0.13
    coding = Superposition((1.0, 1.0), (0.7, 0.3))
    # as if every message had the rate that needs `gap` times as much
    rates = [np.log2(1 + gap * (2**rate - 1)) for rate in (1.0, 1.0)]
    for gain in np.geomspace(0.05, 5, 60):
        expected, closest = decode(gain, rates, (0.7, 0.3), noise_dbm=-45.0)
        if abs(closest) < 1e-6:
            continue
        snr = np.array(gain * 10 ** ((23 + 45) / 10) * 100**-2.5)
        found = Outage(1.3).probabilities(coding, (), snr)
        assert found.tolist() == [float(expected > 0), float(expected > 1)]


def test_a_gap_of_nothing_is_the_formula():
    section = RadioSection(decoder="gap", spectral_efficiency=1.2)
    coding = Superposition((1.2, 1.2), (0.8, 0.2))
    plain = outage_link(RadioSection(spectral_efficiency=1.2)).decoding_probabilities(coding)
    with_gap = outage_link(section).decoding_probabilities(coding)
    np.testing.assert_allclose(with_gap, plain, atol=1e-3)
