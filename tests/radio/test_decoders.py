"""Decoders that are not Shannon's formula: finite codewords, tables, imperfect cancellation."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from slimfl.devices import Population
from slimfl.errors import RequestError
from slimfl.experiment import RadioSection, build
from slimfl.radio import (
    Nakagami,
    OutageLink,
    Rayleigh,
    Rician,
    Superposition,
    decoding_frequencies,
    outage_channel,
    outage_link,
    signal,
)
from slimfl.radio.decoders import NormalApproximation, Table
from slimfl.radio.fading import NoFading, Shadowed

BOTH = Superposition((1.5, 1.5), (0.8, 0.2))
ROWS = ((6.0, 0.0, 0.0), (9.0, 0.5, 0.1), (12.0, 0.95, 0.6), (15.0, 1.0, 0.98))


def alike(count):
    return Population.alike(np.full(count, 100), max_width=1, power_dbm=23.0, distance_m=100.0)


# finite codewords


def error_rate(sinr, symbols, rate):
    """Polyanskiy, Poor and Verdu 2010 with 2 n real channel uses for n complex symbols."""
    uses = 2 * symbols
    capacity = 0.5 * math.log2(1 + sinr)
    dispersion = sinr * (sinr + 2) / (2 * (sinr + 1) ** 2) * math.log2(math.e) ** 2
    bits = symbols * rate
    # log2 M = n C - sqrt(n V) Q^-1(error) + log2(n) / 2, in complex symbols for the last term
    argument = (uses * capacity - bits + math.log2(symbols) / 2) / math.sqrt(uses * dispersion)
    return 0.5 * math.erfc(argument / math.sqrt(2))


def test_the_dispersion_at_0_db_is_the_published_one():
    """V = (3/8) log2(e)^2 bit^2 per real channel use at a signal-to-noise ratio of 1."""
    decoder, symbols = NormalApproximation(1000), 1000
    rate = 1.0 - 0.1
    [success] = decoder.probabilities(Superposition((rate,), (1.0,)), (), np.array(1.0))
    argument = (symbols * 0.1 + math.log2(symbols) / 2) / math.sqrt(
        2 * symbols * 0.375 * math.log2(math.e) ** 2
    )
    assert success == pytest.approx(stats.norm.cdf(argument), rel=1e-12)


@pytest.mark.parametrize("symbols", [100, 768, 5000])
@pytest.mark.parametrize("snr", [3.0, 15.0, 40.0])
def test_two_superposed_codewords_by_the_printed_formula(symbols, snr):
    first = error_rate(0.8 * snr / (1 + 0.2 * snr), symbols, 1.5)
    second = error_rate(0.2 * snr, symbols, 1.5)
    found = NormalApproximation(symbols).probabilities(BOTH, (), np.array(snr))
    assert found[0] == pytest.approx(1 - first, abs=1e-12)
    assert found[1] == pytest.approx((1 - first) * (1 - second), abs=1e-12)


def test_a_message_of_several_codewords_needs_all_of_them():
    one = NormalApproximation(500).probabilities(BOTH, (750.0, 750.0), np.array(14.0))
    four = NormalApproximation(500).probabilities(BOTH, (3000.0, 3000.0), np.array(14.0))
    assert four[0] == pytest.approx(one[0] ** 4)
    assert four[1] == pytest.approx(one[1] ** 4)


def test_without_a_length_every_message_is_one_codeword():
    bits = (1500.0, 3000.0)
    found = NormalApproximation().probabilities(BOTH, bits, np.array(12.0))
    first = error_rate(9.6 / 3.4, 1000, 1.5)
    second = error_rate(2.4, 2000, 1.5)
    np.testing.assert_allclose(found, [1 - first, (1 - first) * (1 - second)], atol=1e-12)
    assert NormalApproximation().probabilities(BOTH, (), np.array(12.0)) is None


def test_long_codewords_are_shannons_formula_and_short_ones_fail_above_it():
    """Under fading the length hardly matters: it is the gain that decides (Yang et al. 2014)."""
    ideal = OutageLink.at(0.05, Rayleigh()).decoding_probabilities(BOTH)
    for symbols, close in ((10_000_000, 2e-4), (100, 0.02)):
        link = OutageLink.at(0.05, Rayleigh(), decoder=NormalApproximation(symbols))
        np.testing.assert_allclose(link.decoding_probabilities(BOTH), ideal, atol=close)
    tight = 0.95 / BOTH.thresholds(1.0)[-1]  # the gain exceeds what is needed by 5%
    for symbols, low, high in ((10_000_000, 0.999, 1.0), (100, 0.5, 0.9)):
        link = OutageLink.at(tight, NoFading(), decoder=NormalApproximation(symbols))
        assert low <= link.decoding_probabilities(BOTH)[1] <= high


# three ways to the same probabilities

DECODERS = {
    "short": NormalApproximation(100),
    "long": NormalApproximation(20_000),
    "table": Table.from_rows(ROWS),
}


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize(
    ("fading", "density"),
    [
        (Rayleigh(), stats.expon.pdf),
        (Rician(4.0), lambda g: 10 * stats.ncx2.pdf(10 * g, 2, 8.0)),
        (Nakagami(2.5), stats.gamma(2.5, scale=0.4).pdf),
    ],
    ids=["rayleigh", "rician", "nakagami"],
)
def test_the_average_over_the_gain_is_an_integral_and_a_frequency(name, fading, density):
    decoder, c_over_p = DECODERS[name], 0.06
    link = OutageLink.at(c_over_p, fading, decoder=decoder)
    found = link.decoding_probabilities(BOTH)
    for message in (0, 1):

        def at(gain, message=message):
            snr = np.asarray(gain) / c_over_p
            return decoder.probabilities(BOTH, (), snr)[..., message] * density(gain)

        edges = np.concatenate([np.linspace(1e-6, 4, 161), np.linspace(4.5, 30, 40)])
        expected = sum(
            integrate.fixed_quad(at, a, b, n=40)[0] for a, b in itertools.pairwise(edges)
        )
        assert found[message] == pytest.approx(expected, abs=2e-4)
    frequencies = decoding_frequencies(link, BOTH, 60_000, seed=2)
    error = np.sqrt(found * (1 - found) / 60_000)
    assert (np.abs(frequencies - found) <= 4.5 * error).all()


@pytest.mark.parametrize("decoder", ["normal", "table"])
@pytest.mark.parametrize("attempts", [1, 3])
def test_the_channel_decodes_as_often_as_it_says(decoder, attempts):
    section = RadioSection(
        decoder=decoder,
        codeword_symbols=300 if decoder == "normal" else None,
        decoder_table=ROWS if decoder == "table" else None,
        max_attempts=attempts,
        fading="rician",
        shadowing_db=5.0,
    )
    channel, devices = outage_channel(section), alike(20_000)
    sent = signal(section, ((0,), (1,)), 2, (450.0, 450.0))
    links, _ = channel.links({}, 4, devices, seed=0)
    received = channel.receive(links, [sent] * 20_000, None)
    expected = channel.probabilities(devices, sent)[0]
    found = (received.decoded[:, None] > np.arange(2)).mean(axis=0)
    error = np.sqrt(expected * (1 - expected) / 20_000)
    assert (np.abs(found - expected) <= 4.5 * error).all()
    # a part of the devices, one at a time, gives the same
    for row in (0, 17, 19_999):
        alone = channel.receive(links.take([row]), [sent], None)
        assert alone.decoded[0] == received.decoded[row]
        assert alone.attempts[0] == received.attempts[row]


def test_a_decoder_that_needs_the_length_and_has_none_says_so():
    section = RadioSection(decoder="normal")
    channel = outage_channel(section)
    assert channel.probabilities(alike(3), signal(section, ((0,), (1,)), 2)) is None
    with pytest.raises(RequestError, match="codeword_symbols"):
        outage_link(section).decoding_probabilities(BOTH)


# tables


def test_a_table_is_linear_in_decibels_and_constant_beyond_its_ends():
    table = Table.from_rows(ROWS)
    snr = 10 ** (np.array([0.0, 7.5, 9.0, 40.0]) / 10)
    found = table.probabilities(BOTH, (), snr)
    np.testing.assert_allclose(found, [[0, 0], [0.25, 0.05], [0.5, 0.1], [1.0, 0.98]], atol=1e-12)
    assert table.probabilities(BOTH, (), np.array(0.0)).tolist() == [0, 0]


def test_a_higher_gain_is_never_worse_by_the_noise_of_a_measurement():
    table = Table.from_rows([(5.0, 0.4), (6.0, 0.38), (7.0, 0.9)])
    found = table.probabilities(Superposition((1.5,), (1.0,)), (), 10 ** np.linspace(0.5, 0.7, 50))
    assert (np.diff(found[:, 0]) >= 0).all()


def test_a_table_can_be_a_file_and_the_experiment_then_holds_it(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("snr_db,1,2\n" + "\n".join(",".join(map(str, row)) for row in ROWS) + "\n")
    experiment = build({"radio": {"decoder": "table", "decoder_table": str(path)}})
    assert experiment.radio.decoder_table == ROWS
    path.unlink()
    outage_channel(experiment.radio)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "rows"),
        ("snr_db,p\n", "rows"),
        ("1,0.5\n2,x\n", "line 2"),
        ("1,nan\n", "finite"),
    ],
)
def test_a_file_that_is_no_table_is_refused_in_one_sentence(tmp_path, text, words):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(RequestError, match=words) as caught:
        build({"radio": {"decoder": "table", "decoder_table": str(path)}})
    assert "\n" not in str(caught.value)


def test_a_missing_table_is_refused():
    with pytest.raises(RequestError, match="there is no decoder table"):
        build({"radio": {"decoder": "table", "decoder_table": "/nowhere/table.csv"}})


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (((1.0, 0.5), (1.0, 0.6)), "ascending"),
        (((1.0, 1.5),), "from 0 to 1"),
        (((1.0, 0.5, 0.6),), "more often than the one before"),
        (((1.0, 0.5), (2.0, 0.5, 0.5)), "same number"),
        (((1.0,),), "one probability per message"),
    ],
)
def test_a_table_that_cannot_be_is_refused(rows, words):
    with pytest.raises(RequestError, match=words):
        outage_channel(RadioSection(decoder="table", decoder_table=rows))


def test_a_table_for_another_number_of_messages_is_refused():
    with pytest.raises(RequestError, match="2 messages and the signal has 1"):
        Table.from_rows(ROWS).probabilities(Superposition((1.5,), (1.0,)), (), np.array(1.0))


# imperfect cancellation


@pytest.mark.parametrize("residual", [0.0, 0.01, 0.05])
def test_residual_interference_by_a_literal_receiver(residual):
    rates, split, c_over_p = (0.8, 1.0, 0.6), (0.7, 0.24, 0.06), 0.02
    coding = Superposition(rates, split, residual)
    link = OutageLink.at(c_over_p, Rayleigh())
    gains = np.geomspace(1e-3, 50, 400)
    for gain, found in zip(gains, link.decoded(coding, gains), strict=True):
        expected = 0
        for i, rate in enumerate(rates):
            around = sum(split[i + 1 :]) + residual * sum(split[:i])
            if math.log2(1 + gain * split[i] / (c_over_p + gain * around)) < rate:
                break
            expected += 1
        assert found == expected
    np.testing.assert_allclose(
        coding.sinr(np.array(3.0))[1],
        3 * 0.24 / (1 + 3 * (0.06 + residual * 0.7)),
    )


def test_residual_interference_can_make_a_split_impossible():
    with pytest.raises(RequestError, match=r"segment 2 drowns in the others; .* would work") as it:
        Superposition((1.5, 1.5), (0.8, 0.2), 0.2)
    proposal = str(it.value).rpartition(";")[2].removesuffix("would work").split(",")
    Superposition((1.5, 1.5), tuple(float(share) for share in proposal), 0.2)
    with pytest.raises(RequestError, match="no split would work"):
        Superposition((1.5, 1.5), (0.8, 0.2), 0.5)


def test_one_message_has_nothing_to_cancel():
    assert Superposition((1.5,), (1.0,), 0.3).thresholds(0.1) == pytest.approx(
        Superposition((1.5,), (1.0,)).thresholds(0.1)
    )


def test_shadow_and_decoder_together():
    """A table under a shadow: an average of averages."""
    table, nodes = Table.from_rows(ROWS), np.linspace(-6, 6, 241)
    shadowed = OutageLink.at(0.06, Shadowed(Rayleigh(), 6.0), decoder=table)
    found = shadowed.decoding_probabilities(BOTH)
    weights = np.exp(-(nodes**2) / 2)
    parts = [
        OutageLink.at(ratio, Rayleigh(), decoder=table).decoding_probabilities(BOTH)
        for ratio in 0.06 / 10 ** (0.6 * nodes)
    ]
    np.testing.assert_allclose(found, np.average(parts, axis=0, weights=weights), atol=1e-5)
