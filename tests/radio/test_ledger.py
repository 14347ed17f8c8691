"""Bits, airtime and energy, added up a second time device by device."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slimfl.devices import Population
from slimfl.experiment import RadioSection
from slimfl.radio import outage_channel, outage_link, segment_bits, signal
from slimfl.radio.ledger import PAPER_MODEL_BITS, radio_cost

SLIMFL, HALF, FULL = ((0,), (1,)), ((0,),), ((0, 1),)
MESSAGES = [
    ((0,), (1,), (2,)),
    ((0,),),
    ((0, 1, 2),),
    ((0, 1), (2,)),
    ((0,), (1,)),
]


def cost_of(section, bits, uploads):
    """The cost for signals of which the given numbers of messages were decoded."""
    sent = [replace(upload, segment_bits=tuple(bits)) for upload, _ in uploads]
    devices = Population.alike(
        np.ones(len(uploads), np.int64),
        max_width=len(bits) - 1,
        power_dbm=section.power_dbm,
        distance_m=section.distance_m,
    )
    channel = outage_channel(section)
    links, _ = channel.links({}, 1, devices, 0)
    receptions = channel.receive(links, sent, None)
    decoded = np.array([count for _, count in uploads], np.int64)
    return radio_cost(links, sent, replace(receptions, decoded=decoded), len(bits))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from(MESSAGES), st.integers(0, 3)), max_size=8),
    st.lists(st.integers(1, 10**6), min_size=3, max_size=3),
    st.floats(-10, 40),
)
def test_the_sums_are_those_of_a_loop_over_devices(drawn, sizes, power_dbm):
    section = RadioSection(
        power_dbm=power_dbm, spectral_efficiency=(1.0, 1.5, 2.0), bandwidth_hz=2e6
    )
    rates = (1.0, 1.5, 2.0)
    bits = np.array(sizes, float)
    uploads = [(signal(section, m, 3), min(decoded, len(m))) for m, decoded in drawn]
    found = cost_of(section, bits, uploads)

    sent, decoded, dropped = [0.0] * 3, [0.0] * 3, [0.0] * 3
    airtime_s = 0.0
    for upload, count in uploads:
        longest = 0.0
        for number, message in enumerate(upload.messages):
            seconds = sum(sizes[s] for s in message) / (sum(rates[s] for s in message) * 2e6)
            longest = max(longest, seconds)
            for segment in message:
                sent[segment] += sizes[segment]
                (decoded if number < count else dropped)[segment] += sizes[segment]
        airtime_s += longest
    assert found.bits_sent == pytest.approx(sent)
    assert found.bits_decoded == pytest.approx(decoded)
    assert found.bits_dropped == pytest.approx(dropped)
    assert found.airtime_s == pytest.approx(airtime_s)
    assert found.energy_j == pytest.approx(airtime_s * 10 ** (power_dbm / 10) / 1000)
    np.testing.assert_allclose(
        np.add(found.bits_decoded, found.bits_dropped), found.bits_sent, atol=1e-6
    )


def test_the_papers_accounting_is_equal_segments_and_23_dbm():
    section = RadioSection(accounting="paper")
    bits = segment_bits(section, [1530, 3056])
    assert bits.tolist() == [86_344, 86_344]
    assert bits.sum() == PAPER_MODEL_BITS == 172_688
    cost = cost_of(section, bits, [(signal(section, SLIMFL, 2), 2)] * 10)
    assert cost.paper_power_mw == pytest.approx(199.5, abs=0.05)
    assert cost.bits_sent == [863_440, 863_440]


def test_true_accounting_counts_the_parameters():
    assert segment_bits(RadioSection(), [1530, 3056]).tolist() == [1530 * 32, 3056 * 32]
    assert segment_bits(RadioSection(bits_per_parameter=8), [1530, 3056]).tolist() == [
        12_240,
        24_448,
    ]


def test_the_papers_power_does_not_depend_on_devices_or_airtime_and_nobody_costs_nothing():
    section = RadioSection(accounting="paper")
    bits = segment_bits(section, [1, 1])
    one, many = ([(signal(section, HALF, 2), 1)] * count for count in (1, 7))
    assert cost_of(section, bits, one).paper_power_mw == cost_of(section, bits, many).paper_power_mw
    nobody = cost_of(section, bits, [])
    assert (nobody.paper_power_mw, nobody.airtime_s, nobody.energy_j) == (0, 0, 0)
    assert nobody.bits_sent == nobody.bits_decoded == nobody.bits_dropped == [0, 0]


def test_a_full_model_takes_no_longer_than_a_segment():
    """Twice the bits at twice the rate: the paper's equal time for all methods."""
    section = RadioSection(accounting="paper")
    bits = segment_bits(section, [1, 1])
    times = [
        cost_of(section, bits, [(signal(section, m, 2), 0)]).airtime_s for m in (SLIMFL, HALF, FULL)
    ]
    assert times == pytest.approx([86_344 / (1.5 * 75e6)] * 3)


@pytest.mark.parametrize(
    ("name", "mbytes"), [("good", (1.96, 198.45, 5.46)), ("poor", (18.32, 130.10, 57.44))]
)
def test_a_thousand_rounds_of_ten_devices_give_table_6(name, mbytes):
    """From fading gains through decoding to the ledger: SlimFL's half of the printed table."""
    section = RadioSection(channel=name, accounting="paper")
    link, upload = outage_link(section), signal(section, SLIMFL, 2)
    bits = segment_bits(section, [1, 1])
    totals = np.zeros((3, 2))
    both = 0.0
    for number in range(1, 1001):
        decoded = link.decoded(upload.coding, link.gains(11, number, 10))
        cost = cost_of(section, bits, [(upload, int(count)) for count in decoded])
        totals += [cost.bits_sent, cost.bits_decoded, cost.bits_dropped]
        both += 2 * cost.bits_decoded[1]
    mebibytes = 8 * 2**20
    sent, decoded, dropped = totals.sum(axis=1) / mebibytes
    found = (decoded - both / mebibytes, both / mebibytes, dropped)
    assert sent == pytest.approx(205.86, abs=0.01)
    # binomial errors of counts of ten thousand, in MBytes of one segment (102.9) or two (205.9);
    # both sides are draws, so the error is sqrt(2) times that of one
    shares = (mbytes[0] / 102.9, mbytes[1] / 205.9, mbytes[2] / 205.9)
    for value, printed, share, size in zip(
        found, mbytes, shares, (102.9, 205.9, 205.9), strict=True
    ):
        error = size * np.sqrt(2 * share * (1 - share) / 10_000)
        assert abs(value - printed) < 4 * error
