"""Path loss and noise against the printed formulas, worked out by hand."""

import math

import numpy as np
import pytest

from slimfl.devices import Population
from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio import (
    noise_to_power,
    outage_channel,
    outage_link,
    possible_links,
    section_probabilities,
    signal,
)
from slimfl.radio.path_loss import (
    MANY,
    SCENARIOS,
    FreeSpace,
    PowerLaw,
    Urban,
    build_path_loss,
    drawn_case,
)


def decibel(model, *distances):
    [case] = model.cases(np.array(distances, float))
    return (10 * np.log10(case.loss)).tolist()


def at(*distances, power_dbm=23.0):
    count = len(distances)
    return Population(
        np.arange(count),
        np.ones(count, np.int64),
        np.ones(count, np.int64),
        np.full(count, power_dbm),
        np.array(distances, float),
    )


def test_the_papers_power_law():
    assert decibel(PowerLaw(2.5), 100.0, 10.0) == pytest.approx([50, 25])


def test_many_devices_have_the_losses_of_few():
    distances = np.random.default_rng(0).uniform(1, 500, MANY + 10)
    [many], [few] = PowerLaw(3.1).cases(distances), PowerLaw(3.1).cases(distances[:20])
    np.testing.assert_allclose(many.loss[:20], few.loss, rtol=1e-14)


@pytest.mark.parametrize(
    ("hertz", "metre", "expected"),
    [(1e9, 1000.0, 92.45), (2.4e9, 100.0, 80.05), (5.9e9, 10.0, 67.86), (300e6, 1.0, 21.99)],
)
def test_free_space_by_itu_r_p_525(hertz, metre, expected):
    """32.45 + 20 log10(f / MHz) + 20 log10(d / km)."""
    assert decibel(FreeSpace(hertz), metre)[0] == pytest.approx(expected, abs=0.01)


def printed(scenario, ghz, ground_m, server_m, device_m):
    """Table 7.4.1-1 of TR 38.901 once more, line by line: LOS and NLOS."""
    d3 = math.sqrt(ground_m**2 + (server_m - device_m) ** 2)
    turn = 4 * (server_m - 1) * (device_m - 1) * ghz * 1e9 / 299_792_458
    if scenario == "umi":
        los = 32.4 + 21 * math.log10(d3) + 20 * math.log10(ghz)
        if ground_m > turn:
            los = 32.4 + 40 * math.log10(d3) + 20 * math.log10(ghz)
            los -= 9.5 * math.log10(turn**2 + (server_m - device_m) ** 2)
        nlos = 35.3 * math.log10(d3) + 22.4 + 21.3 * math.log10(ghz) - 0.3 * (device_m - 1.5)
    else:
        los = 28.0 + 22 * math.log10(d3) + 20 * math.log10(ghz)
        if ground_m > turn:
            los = 28.0 + 40 * math.log10(d3) + 20 * math.log10(ghz)
            los -= 9 * math.log10(turn**2 + (server_m - device_m) ** 2)
        nlos = 13.54 + 39.08 * math.log10(d3) + 20 * math.log10(ghz) - 0.6 * (device_m - 1.5)
    return los, max(los, nlos)


@pytest.mark.parametrize("scenario", ["umi", "uma"])
@pytest.mark.parametrize("ghz", [0.7, 3.5, 28.0])
@pytest.mark.parametrize("ground_m", [10.0, 55.0, 180.0, 700.0, 4000.0])
@pytest.mark.parametrize(("server_m", "device_m"), [(None, 1.5), (30.0, 8.0)])
def test_3gpp_losses_are_those_of_the_table(scenario, ghz, ground_m, server_m, device_m):
    height = server_m or {"umi": 10.0, "uma": 25.0}[scenario]
    expected = printed(scenario, ghz, ground_m, height, device_m)
    for state, loss in zip(("always", "never"), expected, strict=True):
        model = Urban(SCENARIOS[scenario], ghz * 1e9, state, server_m, device_m)
        assert decibel(model, ground_m)[0] == pytest.approx(loss, abs=1e-9)


def test_3gpp_by_pencil():
    """UMi, LOS, 28 GHz: 32.4 + 21 log10(99.99...) + 28.943 dB at 100 m in space."""
    ground = math.sqrt(100**2 - 8.5**2)
    assert decibel(Urban(SCENARIOS["umi"], 28e9, "always"), ground)[0] == pytest.approx(
        103.34, abs=0.01
    )


@pytest.mark.parametrize(
    ("scenario", "metre", "expected"),
    [
        ("umi", 12.0, 1.0),
        ("umi", 18.0, 1.0),
        ("umi", 36.0, 0.5 + 0.5 * math.exp(-1)),
        ("uma", 18.0, 1.0),
        ("uma", 63.0, 2 / 7 + 5 / 7 * math.exp(-1)),
    ],
)
def test_the_probability_of_a_line_of_sight(scenario, metre, expected):
    model = Urban(SCENARIOS[scenario], 3.5e9)
    los, nlos = model.cases(np.array([metre]))
    assert los.probability[0] == pytest.approx(expected, rel=1e-12)
    assert los.probability[0] + nlos.probability[0] == 1


def test_a_device_is_drawn_into_the_line_of_sight_once_and_by_its_own_number():
    cases = Urban(SCENARIOS["umi"], 3.5e9).cases(np.full(20_000, 60.0))
    drawn = drawn_case(cases, 3, np.arange(20_000))
    expected = cases[0].probability[0]
    assert abs((drawn == 0).mean() - expected) < 4 * math.sqrt(expected / 20_000)
    alone = Urban(SCENARIOS["umi"], 3.5e9).cases(np.full(1, 60.0))
    for device in (0, 7, 19_999):
        assert drawn_case(alone, 3, np.array([device])) == drawn[device]


def _sigma_db(**keys):
    """The deviation of many links' gains without fading, in dB."""
    link = outage_link(RadioSection(**keys, fading="none"))
    return round(np.std(10 * np.log10(link.gains(0, 1, 200_000))), 1)


def test_3gpp_brings_its_own_shadowing_unless_told_otherwise():
    section = {"path_loss": "umi", "noise_dbm": -92, "line_of_sight": "never"}
    assert _sigma_db(**section) == 7.8
    assert _sigma_db(**section, shadowing_db=3) == 3
    assert _sigma_db(**section, shadowing_db=0) == 0


def test_a_link_by_itself_is_in_line_of_sight_or_not():
    section = RadioSection(path_loss="uma", noise_dbm=-92)
    with pytest.raises(RequestError, match="line_of_sight"):
        outage_link(section)
    weights = [weight for weight, _ in possible_links(section)]
    assert sum(weights) == pytest.approx(1)


@pytest.mark.parametrize("path_loss", ["umi", "uma", "free-space"])
@pytest.mark.parametrize("shadowing_db", [None, 0.0])
def test_devices_arrive_as_often_as_their_places_say(path_loss, shadowing_db):
    """Over seeds, so that lines of sight, shadows and fading all vary."""
    section = RadioSection(
        path_loss=path_loss,
        noise_density_dbm_hz=-174,
        noise_figure_db=9,
        bandwidth_hz=20e6,
        power_dbm=12 if path_loss != "free-space" else 4,
        shadowing_db=shadowing_db,
        fading="rician",
        carrier_hz=3.5e9,
    )
    channel = outage_channel(section)
    devices = at(30.0, 60.0, 120.0, 200.0, power_dbm=section.power_dbm)
    sent = signal(section, ((0,), (1,)), 2, (1e5, 1e5))
    expected = channel.probabilities(devices, sent)
    assert 0.001 < expected.min() < expected.max() < 1
    counts, seeds = np.zeros((4, 2)), 1500
    for seed in range(seeds):
        links, _ = channel.links({}, 1, devices, seed)
        decoded = channel.receive(links, [sent] * 4, None).decoded
        counts += decoded[:, None] > np.arange(2)
    error = np.sqrt(expected * (1 - expected) / seeds)
    assert (np.abs(counts / seeds - expected) <= 4.5 * error + 1e-3).all()
    there = section.model_copy(update={"distance_m": 120.0})
    np.testing.assert_allclose(section_probabilities(there, sent.coding), expected[2], atol=1e-9)


# noise


def test_noise_by_density_is_noise_by_power():
    by_density = RadioSection(noise_density_dbm_hz=-120, bandwidth_hz=1e6, noise_figure_db=7)
    by_power = RadioSection(noise_dbm=-53, bandwidth_hz=1e6)
    assert by_density.channel == "custom"
    assert by_density.noise == pytest.approx(-53)
    thermal = RadioSection(noise_density_dbm_hz=-174, bandwidth_hz=20e6, noise_figure_db=9)
    assert thermal.noise == pytest.approx(-91.99, abs=0.005)
    assert noise_to_power(by_density) == pytest.approx(noise_to_power(by_power))


def test_a_section_survives_being_written_and_read():
    section = RadioSection(noise_density_dbm_hz=-120, path_loss="umi")
    again = RadioSection.model_validate(section.model_dump(exclude_none=True))
    assert again == section
    assert build_path_loss(again) == build_path_loss(section)
