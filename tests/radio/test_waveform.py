"""Real symbols: what is decoded is what was sent, bit for bit."""

import subprocess
import sys

import numpy as np
import pytest

from slimfl import extras
from slimfl.cli import main
from slimfl.devices import Population
from slimfl.errors import RequestError
from slimfl.experiment import RadioSection, build
from slimfl.radio import Signal, Superposition, build_channel, from_db
from slimfl.radio import build_coding as coding
from slimfl.radio.coding import InTurnAtLowerPower, InTurnInShorterTime
from slimfl.radio.waveform import sionna_blocks
from slimfl.radio.waveform.code import CRC_BITS, Modem, code_of, groups_of
from slimfl.radio.waveform.symbols import blocks_of, exchange, layers_of, superposed
from tests import asking

SMALL = Modem(bits_per_symbol=2, block_bits=256)


def two(split=(0.8, 0.2), rates=(1.0, 1.0), residual=0.0):
    return Signal(((0,), (1,)), Superposition(rates, split, residual))


def random_payload(seed, *sizes):
    """Any bytes, also those of parameters that are not numbers."""
    random = np.random.default_rng(seed)
    return [random.integers(256, size=size, dtype=np.uint8) for size in sizes]


def flat(snr_db):
    return [np.array([from_db(snr_db)])]


# code blocks


@pytest.mark.parametrize("modulation", [2, 4, 6])
@pytest.mark.parametrize(("bits", "rate"), [(1000, 1.5), (48_960, 1.5), (97_792, 1.7), (200, 1.4)])
def test_code_blocks_hold_the_message_in_the_time_of_its_rate(modulation, bits, rate):
    code = code_of(Modem(modulation, 1024), bits, rate)
    assert code.blocks * code.payload_bits >= bits > (code.blocks - 1) * code.payload_bits
    assert code.information_bits == code.payload_bits + CRC_BITS <= 1024
    assert code.coded_bits == code.symbols * modulation
    assert code.symbols - 1 < code.payload_bits / rate <= code.symbols


@pytest.mark.parametrize(
    ("modem", "rate", "words"),
    [
        (Modem(2), 3.0, "raise radio.modulation"),
        (Modem(8), 1.0, "lower radio.modulation"),
        (Modem(4, 8000), 1.2, "lower radio.block_bits"),
    ],
)
def test_a_rate_that_no_code_has_is_refused(modem, rate, words):
    with pytest.raises(RequestError, match=words):
        code_of(modem, 100_000, rate)


# symbols


def test_superposed_symbols_have_the_power_of_their_split():
    """Of bits that are all zero: scrambling makes every constellation point as likely."""
    signal = two((0.9, 0.1), (1.0, 1.0))
    layers = layers_of(Modem(4, 1024), groups_of(signal.coding)[0], [20_000, 12_000])
    zero = [blocks_of(each.code, np.zeros(bits // 8, np.uint8))
            for each, bits in zip(layers, (20_000, 12_000), strict=True)]  # fmt: skip
    alone = [each.symbols(bits) for each, bits in zip(layers, zero, strict=True)]
    whole = superposed(layers, zero)
    assert len(whole) == len(alone[0]) == len(alone[1])
    assert np.mean(np.abs(whole) ** 2) == pytest.approx(1, abs=0.02)
    for symbols in alone:
        assert np.mean(np.abs(symbols) ** 2) == pytest.approx(1, abs=0.02)
    assert abs(np.vdot(alone[0], alone[1])) / len(whole) < 0.03
    rest = whole - np.sqrt(0.9) * alone[0]
    np.testing.assert_allclose(rest, np.sqrt(0.1) * alone[1], atol=1e-6)


def test_soft_values_have_the_sign_that_the_decoder_wants():
    """QPSK of TS 38.211: bit 0 is the sign of the real part, bit 1 that of the imaginary part."""
    symbols = np.array([1 + 1j, -1 + 1j, 1 - 1j, -1 - 1j], np.complex64) / np.sqrt(2)
    soft = sionna_blocks.demap(2, symbols, np.full(4, 0.5, np.float32))
    # log p(1)/p(0) = -4 Re(y) / (sqrt(2) noise)
    np.testing.assert_allclose(soft.reshape(4, 2)[:, 0], [-4, 4, -4, 4], rtol=1e-4)
    np.testing.assert_allclose(soft.reshape(4, 2)[:, 1], [-4, -4, 4, 4], rtol=1e-4)


# exchange


def test_messages_arrive_bit_identical_or_not_at_all():
    payload = random_payload(1, 100, 150)
    random = np.random.default_rng(2)
    for snr_db, expected in ((25, 2), (7, 1), (-6, 0)):
        arrived, used = exchange(SMALL, two(), payload, flat(snr_db), random)
        assert (len(arrived), used) == (expected, 1)
        for got, sent in zip(arrived, payload, strict=False):
            assert got.tobytes() == sent.tobytes()
            assert got is not sent


def test_three_layers_of_16_qam_are_cancelled_one_after_the_other():
    signal = Signal(((0,), (1,), (2,)), Superposition((1.0, 1.0, 1.0), (0.7, 0.22, 0.08)))
    payload = random_payload(3, 60, 90, 30)
    arrived, _ = exchange(Modem(4, 256), signal, payload, flat(28), np.random.default_rng(0))
    assert [each.tobytes() for each in arrived] == [each.tobytes() for each in payload]


def test_what_cancellation_leaves_disturbs_the_next_layer():
    payload = random_payload(4, 60, 60)
    clean, _ = exchange(SMALL, two(), payload, flat(20), np.random.default_rng(0))
    # 20% of 0.8 against 0.2: about 1 dB, below what rate 1 needs with a gap of 1.5 dB
    left, _ = exchange(SMALL, two(residual=0.19), payload, flat(20), np.random.default_rng(0))
    assert (len(clean), len(left)) == (2, 1)


@pytest.mark.parametrize("kind", [InTurnAtLowerPower, InTurnInShorterTime])
def test_messages_in_turn_do_not_disturb_each_other(kind):
    """Split so that superposition would drown the first."""
    signal = Signal(((0,), (1,)), kind((0.8, 0.8), (0.5, 0.5)))
    payload = random_payload(5, 60, 60)
    arrived, _ = exchange(SMALL, signal, payload, flat(12), np.random.default_rng(0))
    assert [each.tobytes() for each in arrived] == [each.tobytes() for each in payload]


def test_attempts_add_up_symbol_by_symbol():
    """Two attempts at half the ratio are decoded, and one is not."""
    signal = Signal(((0,),), Superposition((1.0,), (1.0,)))
    payload, half_db = random_payload(6, 60), 0.0
    for seed in range(3):
        random = np.random.default_rng(seed)
        once, _ = exchange(SMALL, signal, payload, flat(half_db), random)
        twice, used = exchange(SMALL, signal, payload, 2 * flat(half_db), random)
        assert (len(once), len(twice), used) == (0, 1, 2)


def test_an_update_that_makes_no_sense_is_left_for_the_server_to_refuse():
    """Its messages are empty, and there is no code for nothing."""
    empty = [np.zeros(0, np.uint8)] * 2
    arrived, used = exchange(SMALL, two(), empty, flat(20), np.random.default_rng(0))
    assert [len(each) for each in arrived] == [0, 0]
    assert used == 1


@pytest.mark.parametrize(
    "kind",
    [
        Superposition((1.0, 1.2, 0.5), (0.75, 0.2, 0.05)),
        Superposition((0.6, 0.6), (0.8, 0.2), 0.1),
        InTurnAtLowerPower((1.0, 1.5), (0.4, 0.6)),
        InTurnInShorterTime((1.0, 1.5), (0.4, 0.6)),
    ],
)
def test_layers_have_the_sinr_of_the_formula(kind):
    snr = np.array([0.3, 4.0, 100.0])
    found = [
        snr * power / (1 + snr * sum(group.interference(number)))
        for group in groups_of(kind)
        for number, power in enumerate(group.powers)
    ]
    np.testing.assert_allclose(np.stack(found, -1), kind.sinr(snr))


def test_the_demapper_counts_the_other_layers_as_noise(monkeypatch):
    """What it is told for every layer is 1 / SINR of the formula, with unit symbols."""
    given, real = [], sionna_blocks.demap

    def watched(bits_per_symbol, symbols, noise):
        given.append((np.mean(np.abs(symbols) ** 2), noise))
        return real(bits_per_symbol, symbols, noise)

    monkeypatch.setattr(sionna_blocks, "demap", watched)
    signal = two((0.8, 0.2), residual=0.02)
    arrived, _ = exchange(
        SMALL, signal, random_payload(7, 29, 29), flat(16), np.random.default_rng(0)
    )
    assert len(arrived) == len(given) == 2
    for (power, noise), sinr in zip(given, signal.coding.sinr(from_db(16)), strict=True):
        np.testing.assert_allclose(noise, 1 / sinr, rtol=1e-5)
        assert power == pytest.approx(1 + 1 / sinr, rel=0.2)


# the channel


def section(**values):
    given = {"decoder": "waveform", "modulation": 2, "block_bits": 256,
             "spectral_efficiency": 1.0, "noise_dbm": -45.0, **values}  # fmt: skip
    return RadioSection(**given)


def received(radio, ids, payloads):
    channel = build_channel(radio)
    everybody = Population.alike(np.full(8, 100), max_width=1, power_dbm=23.0, distance_m=100.0)
    links, _ = channel.links({}, 3, everybody.take(ids), 7)
    sent = Signal(((0,), (1,)), coding(radio, (1.0, 1.0), (0.8, 0.2)), (800.0, 1200.0))
    return links, channel.receive(links, [sent] * len(ids), [payloads[k] for k in ids])


def test_what_a_device_delivers_does_not_depend_on_the_others():
    payloads = [random_payload(device, 100, 150) for device in range(8)]
    links, all_of_them = received(section(), list(range(8)), payloads)
    assert len(set(all_of_them.decoded.tolist())) > 1
    for ids in ([5, 2], [7]):
        few, some = received(section(), ids, payloads)
        assert some.decoded.tolist() == all_of_them.decoded[ids].tolist()
        np.testing.assert_array_equal(few.gains, links.gains[ids])
    for device in range(8):
        for got, sent in zip(all_of_them.payloads[device], payloads[device], strict=False):
            assert got.tobytes() == sent.tobytes()


def test_gains_airtime_and_energy_are_those_of_the_formula():
    payloads = [random_payload(device, 100, 150) for device in range(4)]
    links, symbols = received(section(), list(range(4)), payloads)
    flat_links, formula = received(section(decoder="outage"), list(range(4)), payloads)
    np.testing.assert_array_equal(links.gains, flat_links.gains)
    np.testing.assert_array_equal(symbols.airtime_s, formula.airtime_s)
    np.testing.assert_array_equal(symbols.energy_j, formula.energy_j)
    assert (symbols.decoded <= formula.decoded).all()  # Shannon is not beaten


def tiny(tmp_path, **radio):
    return asking.run(
        method="slimfl",
        rounds=1,
        out=tmp_path,
        devices=2,
        data__dataset="synthetic",
        data__train_samples=200,
        data__test_samples=50,
        data__downscale=2,
        training__steps=2,
        radio__noise_dbm=-80.0,
        radio__modulation=2,
        radio__block_bits=3000,
        radio__rates="equal",  # LDPC codes end below the rate of the larger message by size
        **radio,
    )


def test_the_server_averages_what_was_sent_bit_for_bit(tmp_path):
    """All arrives here: through symbols, or by a formula that never touches a parameter."""
    models = {}
    for decoder in ("waveform", "outage"):
        done = tiny(tmp_path / decoder, radio__decoder=decoder)
        [record] = done.lines
        assert list(record.decoded) == [2, 2]
        models[decoder] = done.parameters
    assert models["waveform"].tobytes() == models["outage"].tobytes()


def test_a_rate_without_a_code_ends_the_run_before_anybody_trains(tmp_path):
    with pytest.raises(RequestError, match=r"raise radio\.modulation"):
        tiny(tmp_path, radio__decoder="waveform", radio__spectral_efficiency=2.0)


# the extra


@pytest.mark.slow
def test_sionna_is_imported_late_and_leaves_torchs_generator_alone():
    """Its import reseeds torch's default generator."""
    code = """
import sys, torch
import numpy as np
import slimfl.radio, slimfl.radio.waveform.channel, slimfl.radio.waveform.table
from slimfl.radio.waveform.sionna_blocks import map_bits
assert not any(name.split(".")[0] == "sionna" for name in sys.modules)
torch.manual_seed(5)
expected = torch.rand(3)
torch.manual_seed(5)
map_bits(2, np.zeros(4, np.uint8))
assert "sionna.phy" in sys.modules
assert torch.equal(torch.rand(3), expected)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("decoder", ["waveform", "table"])
def test_without_the_extra_one_sentence_says_what_to_install(monkeypatch, capsys, decoder):
    monkeypatch.setattr(extras, "_installed", lambda package: package != "sionna")
    arguments = ["slimfl", "run", "--set", f"radio.decoder={decoder}", "--set",
                 "data.dataset=synthetic"]  # fmt: skip
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "sionna is not installed; run `pip install '.[waveform]'`" in said
    assert "Traceback" not in said


def test_the_keys_of_a_run_make_the_modem():
    radio = build({"radio": {"modulation": 6, "block_bits": 512, "decoder_iterations": 8}}).radio
    assert Modem.of(radio) == Modem(6, 512, 8)
