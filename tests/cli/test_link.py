"""`slimfl link` for every model of the radio."""

import json

import numpy as np
import pytest
from scipy import integrate, stats

RATIO = 10 ** ((-40 - 23) / 10) * 100**2.5
TARGET = 2**1.5 - 1
#: Thresholds of 0.8/0.2 and of everything in one message, at the noise of the poor channel.
NEEDED = (RATIO * TARGET / (0.8 - 0.2 * TARGET), RATIO * TARGET / 0.2, RATIO * 7)


def keys(*pairs):
    return [word for pair in pairs for word in ("--set", f"radio.{pair}")]


def rician(k_db):
    k = 10 ** (k_db / 10)
    return stats.rice(np.sqrt(2 * k), scale=np.sqrt(1 / (2 * (k + 1))))


def shadowed(sigma_db, threshold):
    """Rayleigh under a log-normal, by quadrature."""

    def inside(z):
        return np.exp(-threshold / 10 ** (sigma_db * z / 10)) * stats.norm.pdf(z)

    return integrate.quad(inside, -10, 10)[0]


MODELS = {
    "rician": (
        keys("fading=rician", "rician_k_db=4"),
        lambda t: rician(4).sf(np.sqrt(t)),
    ),
    "nakagami": (
        keys("fading=nakagami", "nakagami_m=2.5"),
        lambda t: stats.gamma(2.5, scale=1 / 2.5).sf(t),
    ),
    "shadowing": (keys("shadowing_db=8"), lambda t: shadowed(8, t)),
    "attempts": (keys("max_attempts=3"), lambda t: stats.gamma(3).sf(t)),
    "loss": (keys("implementation_loss_db=2"), lambda t: np.exp(-t * 10**0.2)),
    "free space": (
        keys("path_loss=free-space", "noise_dbm=-80", "carrier_hz=2e9"),
        lambda t: np.exp(
            -t / RATIO * 10**-10.3 * (4 * np.pi * 100 * 2e9 / 299_792_458) ** 2
        ),
    ),
    "noise density": (
        keys("noise_density_dbm_hz=-130", "bandwidth_hz=1e8", "noise_figure_db=7"),
        lambda t: np.exp(-t / RATIO * 10 ** ((-130 + 80 + 7 - 23) / 10) * 1e5),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("options", "survival"), MODELS.values(), ids=MODELS)
def test_set_reaches_every_model(options, survival, here, tmp_path):
    papers = ("--split", "0.8,0.2", "--set", "radio.rates=equal")
    status, out, error = here("link", *options, *papers, "--json")
    assert status == 0, error
    document = json.loads(out)
    found = [
        *document["slimfl"]["decoding_probabilities"],
        *document["vanilla"]["1.0x"]["decoding_probabilities"],
    ]
    expected = [float(survival(threshold)) for threshold in NEEDED]
    assert found == pytest.approx(expected, rel=1e-6)
    drawn = document["slimfl"]["simulated"]
    for p, seen in zip(expected, drawn, strict=False):
        assert abs(p - seen) <= 4 * np.sqrt(p * (1 - p) / 10_000) + 1e-9
    assert len(document["figures"]) == 3
    for figure in document["figures"]:
        assert (tmp_path / figure).read_bytes()[:4] == b"\x89PNG"


@pytest.mark.slow
def test_a_link_may_be_in_line_of_sight_or_not(here):
    urban = keys("path_loss=umi", "noise_density_dbm_hz=-174", "noise_figure_db=9")
    one, two, both = (
        json.loads(here("link", *urban, *keys(f"line_of_sight={sight}"), "--json")[1])
        for sight in ("always", "never", "drawn")
    )
    sight = 18 / 100 + np.exp(-100 / 36) * (1 - 18 / 100)  # TR 38.901, table 7.4.2-1
    assert both["cases"][0]["probability"] == pytest.approx(sight)
    for name in ("slimfl", "optimal_split"):
        mixed = sight * np.array(one[name]["decoding_probabilities"]) + (1 - sight) * np.array(
            two[name]["decoding_probabilities"]
        )
        assert both[name]["decoding_probabilities"] == pytest.approx(mixed.tolist())


@pytest.mark.slow
def test_a_lossy_downlink_is_described(here):
    status, out, _ = here("link", *keys("downlink=lossy", "downlink_power_dbm=20"), "--json")
    assert status == 0
    heard = json.loads(out)["downlink"]["decoding_probability"]
    assert heard == pytest.approx(np.exp(-RATIO * 10**0.3 * TARGET))
    assert "hears the global model" in here("link", *keys("downlink=lossy"))[1]


@pytest.mark.slow
def test_the_radio_section_of_an_experiment_is_read(here, tmp_path):
    (tmp_path / "own.toml").write_text(
        "rounds = 3\n[model]\nwidths = [0.25, 0.5, 1.0]\n[radio]\nfading = 'rician'\n"
        "noise_dbm = -45\nspectral_efficiency = 1.0\nrates = 'equal'\n[data]\nalpha = 0.3\n"
    )
    status, out, error = here("link", "own.toml", "--set", "radio.rician_k_db=3", "--json")
    assert status == 0, error
    document = json.loads(out)
    assert list(document["vanilla"]) == ["0.25x", "0.5x", "1.0x"]
    assert document["noise_dbm"] == -45
    ratio = 10 ** ((-45 - 23) / 10) * 100**2.5
    [p] = document["vanilla"]["0.25x"]["decoding_probabilities"]
    assert p == pytest.approx(rician(3).sf(np.sqrt(ratio)))
    status, out, error = here("link", "own.toml", "--noise-dbm", "-50", "--json")
    assert json.loads(out)["noise_dbm"] == -50, "an option comes before the file"


WRONG = {
    "unknown key": (keys("fadign=rician"), "radio.fading"),
    "another section": (["--set", "data.alpha=1"], "leave out data.alpha"),
    "no key": (["--set", "rician"], "key=value"),
    "residual": (keys("residual_interference=0.5"), "residual interference"),
    "length": (keys("decoder=normal"), "codeword_symbols"),
    "sizes in turn": (keys("multiplexing=orthogonal-airtime"), "sizes of the segments"),
    "sizes at unequal rates": (
        keys("multiplexing=orthogonal-airtime", "accounting=paper", "spectral_efficiency=1,2"),
        "one radio.spectral_efficiency",
    ),
    "sizes in the objective": (
        keys("split_objective=delivered", "split=optimal-numeric"), "sizes of the segments"
    ),
    "pairs": (keys("users_per_slot=2"), "users_per_slot"),
    "per device": (keys("split=per-device"), "optimal-numeric"),
    "table": (keys("decoder=table", "decoder_table=[[0,0.1,0.1],[9,1,1]]"), "radio.decoder"),
    "adaptive": (keys("model=rate-adaptive"), "radio.model"),
    "own": (keys("model=os:system"), "radio.model"),
    "widths": (["--set", "model.widths=[0.5,1.0]", "--segments", "3"], "widths"),
    "a number for a section": (["--set", "radio=3"], "radio"),
    "a number for the model": (["--set", "model=3"], "model"),
    "no file": (["missing.toml"], "missing.toml"),
    "no slider": ([*keys("shadowing_db=4"), "--explore"], "no slider for radio.shadowing_db"),
    "six segments": (["--segments", "6", "--explore"], "at most 5"),
    "rates on the page": (["--spectral-efficiency", "1,2", "--explore"], "one rate"),
    "no place": (["--explore", "--out", "/dev/null/x"], "cannot be written"),
    "drowning": ([*keys("split=[0.5,0.5]")], "would work"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_request_is_one_sentence(options, words, here, tmp_path):
    status, out, error = here("link", *options)
    assert status == 2, (out, error)
    assert words in " ".join(error.split())
    assert "Traceback" not in error
    assert not list(tmp_path.glob("**/*.png"))


@pytest.mark.slow
def test_segments_in_turn_share_the_time_where_all_have_the_same_size(here):
    in_turn = keys("multiplexing=orthogonal-airtime", "accounting=paper")
    status, out, error = here("link", *in_turn)
    assert status == 0, error
    assert "share" in out.partition("SlimFL")[0]
    assert "power" not in out.partition("SlimFL")[0]
    found = json.loads(here("link", *in_turn, "--json")[1])["slimfl"]["decoding_probabilities"]
    assert found == pytest.approx(
        [np.exp(-RATIO * (2**3 - 1))] * 2
    )  # twice the rate, half the time
    assert "power" in here("link", *keys("multiplexing=orthogonal-energy"))[1]


@pytest.mark.slow
def test_no_method_is_advised_where_nothing_arrives(here):
    status, out, error = here("link", "--noise-dbm", "100")
    assert status == 0, error
    assert "Advice: none. nothing arrives on this link" in " ".join(out.split())
    advice = json.loads(here("link", "--noise-dbm", "100", "--json")[1])["advice"]
    assert advice["method"] is None
    # p = exp(-1.45) of the narrowest: extremely poor, but not nothing
    equal = keys("rates=equal")
    advice = json.loads(here("link", "--noise-dbm", "-28", *equal, "--json")[1])["advice"]
    assert advice["method"] == "vanilla-0.5x"


@pytest.mark.slow
def test_terms_that_hardly_differ_are_a_tie(here):
    equal = keys("rates=equal")
    out = " ".join(here("link", *equal)[1].split())
    assert "Advice: a tie. moderately poor channel: superposition has D = 2.816" in out
    advice = json.loads(here("link", *equal, "--json")[1])["advice"]
    assert advice["tie"]
    assert advice["method"] is None


def test_a_link_has_the_rates_of_the_papers_network(here):
    """1530 and 3056 parameters: both segments take the same time, and segment 1 gets more power."""
    sizes = np.array([1530, 3056])
    document = json.loads(here("link", "--json")[1])
    slim, half = document["slimfl"], document["vanilla"]["0.5x"]
    assert slim["spectral_efficiency"] == pytest.approx((3 * sizes / sizes.sum()).tolist())
    assert [round(p, 3) for p in slim["decoding_probabilities"]] == [0.841, 0.655]
    assert half["spectral_efficiency"] == slim["spectral_efficiency"][:1]


@pytest.mark.slow
def test_what_superposition_can_gain_at_most_is_said(here):
    most = json.loads(here("link", "--json")[1])["superposition_gains_at_most"]
    snr, rates = 1 / RATIO, 3 * np.array([1530, 4586]) / 4586
    worth = np.exp(-(2 ** rates[1] - 2 ** rates[0]) / snr)
    assert most["worth_of_base"] == pytest.approx(worth)
    # every threshold of segment 1 below that of one message, with the power that segment 2 leaves
    first = np.linspace(0.02, 7 / snr, 20_000)
    second = (7 - (2 ** rates[0] - 1)) / np.maximum(snr - (2 ** rates[0] - 1) / first, 1e-12)
    expected = worth * np.exp(-first) + (1 - worth) * np.exp(-second)
    assert 1 + most["share"] == pytest.approx(expected.max() / np.exp(-7 / snr), rel=1e-4)
    assert f"at most {most['share']:.1%}" in here("link")[1]
    assert (
        json.loads(here("link", *keys("fading=none"), "--json")[1])["superposition_gains_at_most"]
        is None
    )


def test_segments_that_are_one_message_are_noted(here):
    in_turn = (*keys("multiplexing=orthogonal-energy", "rates=equal"), "--json")
    [warning] = json.loads(here("link", *in_turn)[1])["warnings"]
    assert "this is one message at a lower rate" in warning
    assert json.loads(here("link", "--json")[1])["warnings"] == []


def test_explore_writes_one_page(here, tmp_path):
    status, out, error = here("link", "--explore", "--noise-dbm", "-45", "--out", "x", "--json")
    assert status == 0, error
    assert json.loads(out) == {"page": "x/link.html"}
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["link.html"]
    assert '"noise_dbm": -45' in (tmp_path / "x/link.html").read_text()
