"""The page of `slimfl link --explore` in a real browser: its numbers are those of Python."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio import inverse_probability_sum, noise_to_power, outage_link, signal, sinr_target
from slimfl.radio.bound import MOST_ROUNDS, TIE, advise
from slimfl.report.pages.link_page import link_page_text, write_link_page

pytestmark = pytest.mark.browser

START = {"noise_dbm": -40.0, "power_dbm": 23.0, "distance_m": 100.0, "path_loss_exponent": 2.5,
         "fading": "rayleigh", "segments": 2, "rate": 1.5,
         "split": "share", "share": 0.8, "devices": 10}  # fmt: skip
SETTINGS = {
    "the paper's poor channel": {},
    "good channel": {"noise_dbm": -51},
    "a tie": {"share": 0.805},
    "hardly a tie": {"share": 0.8, "rate": 1.5, "noise_dbm": -40.5},
    "no tie by the best split": {"share": 0.775},
    "wasted power": {"share": 0.9},
    "a tie by the best split only": {"share": 0.8, "rate": 0.75},
    "a tie at a good place": {"noise_dbm": -45, "split": "optimal"},
    "optimal": {"split": "optimal", "rate": 2.0},
    "one segment": {"segments": 1, "noise_dbm": -33.5},
    "three": {"segments": 3, "split": "optimal", "rate": 0.8, "distance_m": 150},
    "five by hand": {"segments": 5, "rate": 0.4, "share": 0.5, "power_dbm": 10, "noise_dbm": -51.5},
    "no fading": {"fading": "none", "noise_dbm": -37},
    "line of sight": {"fading": "rician-6", "segments": 4, "split": "optimal"},
    "strong line of sight": {"fading": "rician-15", "noise_dbm": -33},
    "one-sided": {"fading": "nakagami-0.5", "path_loss_exponent": 2.2},
    "diversity": {"fading": "nakagami-8", "distance_m": 140, "segments": 3, "rate": 1.0,
                  "split": "optimal"},
    "far": {"distance_m": 1000, "path_loss_exponent": 3.0, "devices": 100},
    "loud": {"noise_dbm": -12, "devices": 3},
}  # fmt: skip


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    return write_link_page(RadioSection(), 2, 10, tmp_path_factory.mktemp("page") / "link.html")


def opened(browser: Any, path: Path) -> Any:
    browser.get(path.as_uri())
    assert browser.execute_script("return document.documentElement.dataset.drawn") == "true"
    return browser


def choose(page: Any, **values: Any) -> None:
    """Set the controls as a person does, and wait until the page has drawn."""
    page.execute_async_script(
        """const [values, done] = arguments, form = document.getElementById("controls");
        for (const [name, value] of Object.entries(values)) {
          form[name].value = value;
          if (form[name].type === "range" && Number(form[name].value) !== Number(value))
            throw new Error(`${name} has no place for ${value}`);
          form[name].dispatchEvent(new Event("input", { bubbles: true }));
        }
        requestAnimationFrame(() => requestAnimationFrame(done));""",
        values,
    )


def value(page: Any, selector: str) -> float:
    return float(page.find_element("css selector", selector).get_attribute("data-value"))


def fading(choice: str) -> dict[str, Any]:
    """The keys of a choice such as `rician-6`."""
    name, _, number = choice.partition("-")
    key = {"rician": "rician_k_db", "nakagami": "nakagami_m"}.get(name)
    return {"fading": name} | ({key: float(number)} if key else {})


def python_link(chosen: dict[str, Any]) -> tuple[RadioSection, Any]:
    """The same link by `slimfl.radio`."""
    from slimfl.radio import optimal_split

    count, rate = chosen["segments"], chosen["rate"]
    split: Any = "optimal"
    if chosen["split"] == "share" and count > 1:
        rest = np.array(optimal_split((rate,) * count)[1:])
        split = (chosen["share"], *((1 - chosen["share"]) * rest / rest.sum()).tolist())
    keys = ("noise_dbm", "power_dbm", "distance_m", "path_loss_exponent")
    section = RadioSection(
        spectral_efficiency=rate,
        split=split,
        **fading(chosen["fading"]),
        **{key: chosen[key] for key in keys},
    )
    return section, signal(section, tuple((i,) for i in range(count)), count).coding


@pytest.mark.parametrize("changed", SETTINGS.values(), ids=SETTINGS)
def test_the_numbers_are_those_of_python(browser, page_file, changed):
    page = opened(browser, page_file)
    chosen = START | changed
    choose(page, **chosen)
    section, coding = python_link(chosen)
    link, count = outage_link(section), chosen["segments"]

    tabled = "-" in chosen["fading"]

    def close(number):
        return pytest.approx(number, rel=2e-4 if tabled else 1e-6, abs=1e-6 if tabled else 1e-9)

    assert value(page, "#ratio") == close(link.noise_to_power)
    probabilities = link.decoding_probabilities(coding)
    for i in range(count):
        cells = [f"tr[data-key='slimfl-{i + 1}'] td:nth-child({k})" for k in (3, 4, 5)]
        found = [value(page, cell) for cell in cells]
        thresholds = coding.thresholds(link.noise_to_power)
        assert found == [close(x) for x in (probabilities[i], thresholds[i], coding.split[i])]
        if not tabled:
            assert page.find_element("css selector", cells[0]).text == f"{probabilities[i]:.4f}"
        [p] = link.decoding_probabilities(signal(section, (tuple(range(i + 1)),), count).coding)
        assert value(page, f"tr[data-key='vanilla-{i + 1}'] td:nth-child(3)") == close(p)
    d = inverse_probability_sum(probabilities)
    if d < 1e8:
        assert value(page, "#slimfl-D") == pytest.approx(d, rel=1e-3 if tabled else 1e-6)
    advice = advise(section, [(i + 1) / count for i in range(count)], chosen["devices"])
    assert page.find_element("id", "method").get_attribute("data-value") == (
        "tie" if advice.is_tie else advice.method or "none"
    )
    said = page.execute_script("return document.getElementById('reason').textContent")
    for mine, theirs in zip(advice.reason.split("; "), said.split("; "), strict=True):
        assert tabled or theirs.lower().startswith(mine.lower().split(" split")[0])
    if chosen["fading"] == "rayleigh":
        assert link.noise_to_power == noise_to_power(section)
    assert page.get_log("browser") == []


def test_an_arrow_key_moves_a_slider_and_the_numbers_follow(browser, page_file):
    from selenium.webdriver import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    page = opened(browser, page_file)
    before = value(page, "#slimfl-D")
    page.find_element("name", "noise_dbm").send_keys(Keys.ARROW_LEFT)
    WebDriverWait(page, 10).until(lambda b: value(b, "#slimfl-D") < before)
    section, coding = python_link(START | {"noise_dbm": -40.5})
    expected = inverse_probability_sum(outage_link(section).decoding_probabilities(coding))
    assert value(page, "#slimfl-D") == pytest.approx(expected, rel=1e-9)
    assert "40.5" in page.find_element("css selector", "#controls output").text


@pytest.mark.parametrize("changed", [{}, {"fading": "rician-6"}], ids=str)
def test_the_map_is_the_advice_of_every_place(browser, page_file, changed):
    page = opened(browser, page_file)
    choose(page, **START | changed)
    found = page.execute_script("return slimflExplorer.preference()")
    methods = ["slimfl", "vanilla-0.5x", "vanilla-1.0x", None]  # -1 where nothing arrives
    for row in range(0, len(found["rates"]), 8):
        for column in range(0, len(found["noises"]), 10):
            section = RadioSection(
                noise_dbm=found["noises"][column], spectral_efficiency=found["rates"][row],
                split="optimal-numeric", **fading(changed.get("fading", "rayleigh")),
            )  # fmt: skip
            advice = advise(section, (0.5, 1.0), 10)
            slim, whole = advice.terms["slimfl"], advice.terms["vanilla-1.0x"]
            apart = abs(slim - whole) / min(slim, whole) if np.isfinite(whole) else np.inf
            arrives = 10 * MOST_ROUNDS / advice.terms["vanilla-0.5x"]
            if (
                apart > 1e-3 and abs(whole / 2 - 1.05) > 1e-3 and abs(arrives - 1) > 0.05
            ):  # beyond the rounding of a table
                method = methods[found["preferred"][row][column]]
                assert method in (advice.methods or (None,))
            if abs(apart - TIE) > 2e-3:
                assert found["tie"][row][column] == advice.is_tie


def test_curves_and_the_map_are_there_for_the_right_number_of_segments(browser, page_file):
    page = opened(browser, page_file)
    curves = "return document.querySelectorAll(`#${arguments[0]} [aria-label=line] path`).length"
    shown = "return document.getElementById(arguments[0]).checkVisibility()"
    for segments, split, map_ in ((1, False, False), (2, True, True), (5, True, False)):
        choose(page, segments=segments, split="optimal")
        assert page.execute_script(curves, "noise") == 2 * segments
        assert page.execute_script(shown, "split") is split
        assert page.execute_script(shown, "map") is map_


def test_a_split_that_drowns_a_segment_says_what_to_change(browser, page_file):
    page = opened(browser, page_file)
    choose(page, share=0.5)
    problem = page.find_element("id", "problem")
    assert problem.is_displayed()
    target = float(sinr_target(1.5))
    assert f"{target / (1 + target):.3f}" in problem.text
    assert page.find_element("id", "slimfl-D").text == "∞"
    assert page.get_log("browser") == []


def test_dragging_in_a_plot_moves_the_link(browser, page_file):
    from selenium.webdriver import ActionChains

    page = opened(browser, page_file)
    plot = page.find_element("id", "map")
    page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", plot)
    ActionChains(page).move_to_element_with_offset(plot, -60, 20).click().perform()
    form = "const f = document.getElementById('controls'); return [f.noise_dbm.value, f.rate.value]"
    noise, rate = map(float, page.execute_script(form))
    assert noise != -40
    assert rate != 1.5
    section, coding = python_link(START | {"noise_dbm": noise, "rate": rate})
    expected = inverse_probability_sum(outage_link(section).decoding_probabilities(coding))
    assert value(page, "#slimfl-D") == pytest.approx(expected, rel=1e-6)


def test_the_page_prints_the_command_that_gives_its_numbers(browser, page_file, tmp_path):
    from typer.testing import CliRunner

    from slimfl.cli.app import app

    page = opened(browser, page_file)
    choose(page, **START | {"fading": "rician-3", "segments": 3, "split": "optimal"})
    words = page.find_element("id", "command").text.replace("\\\n", " ").split()
    assert words[:2] == ["slimfl", "link"]
    done = CliRunner().invoke(app, [*words[1:], "--json", "--out", str(tmp_path)])
    document = json.loads(done.stdout)
    for i, p in enumerate(document["slimfl"]["decoding_probabilities"]):
        cell = f"tr[data-key='slimfl-{i + 1}'] td:nth-child(3)"
        assert value(page, cell) == pytest.approx(p, rel=2e-4)


def test_it_starts_with_the_link_of_the_command(browser, tmp_path):
    section = RadioSection(
        noise_dbm=-93.25, path_loss_exponent=2.51, fading="nakagami", nakagami_m=1.25,
        split=(0.7777, 0.2223), spectral_efficiency=1.23, power_dbm=-31.0,
    )  # fmt: skip
    page = opened(browser, write_link_page(section, 2, 200, tmp_path / "x.html"))
    coding = signal(section, ((0,), (1,)), 2).coding
    expected = outage_link(section).decoding_probabilities(coding)
    found = [value(page, f"tr[data-key='slimfl-{i}'] td:nth-child(3)") for i in (1, 2)]
    assert found == pytest.approx(expected.tolist(), rel=2e-4)


@pytest.mark.parametrize(
    ("segments", "split"),
    [(1, None), (3, None), (3, "optimal"), (2, "optimal-numeric"), (4, "along")],
)
def test_it_starts_with_the_split_of_the_command(browser, tmp_path, segments, split):
    if split == "along":  # what the page's own command line prints
        split = python_link(START | {"segments": 4, "share": 0.55, "rate": 0.5})[0].split
        split = tuple(round(share, 9) for share in split)
    section = RadioSection(split=split, spectral_efficiency=0.5)
    page = opened(browser, write_link_page(section, segments, 10, tmp_path / "x.html"))
    coding = signal(section, tuple((i,) for i in range(segments)), segments).coding
    expected = outage_link(section).decoding_probabilities(coding)
    for i, p in enumerate(expected.tolist()):
        cell = f"tr[data-key='slimfl-{i + 1}'] td:nth-child(3)"
        assert value(page, cell) == pytest.approx(p, rel=1e-6)


def test_the_page_is_alone(browser, page_file):
    page = opened(browser, page_file)
    names = "return performance.getEntriesByType('resource').map(e => e.name)"
    assert page.execute_script(names) == []
    assert page.get_log("browser") == []
    assert "http:" not in page_file.read_text().replace("http://www.w3.org/", "")


@pytest.mark.parametrize("width", [360, 390, 900, 1400])
def test_the_page_fits_the_screen(browser, page_file, width):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    page = opened(browser, page_file)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


REFUSED = {
    "shares": ({"split": (0.6, 0.3, 0.1), "spectral_efficiency": 0.3}, 3, "as the optimal split"),
    "six": ({}, 6, "at most 5"),
    "shadow": ({"shadowing_db": 4.0}, 2, "radio.shadowing_db"),
    "path loss": ({"path_loss": "free-space"}, 2, "radio.path_loss"),
    "rates": ({"spectral_efficiency": (1.0, 2.0)}, 2, "one rate"),
    "attempts": ({"max_attempts": 2}, 2, "radio.max_attempts"),
}  # fmt: skip


@pytest.mark.parametrize(("keys", "segments", "words"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_slider_is_refused(keys, segments, words):
    with pytest.raises(RequestError, match=words):
        link_page_text(RadioSection(**keys), segments, 10)


def test_the_advice_stays_in_sight_on_a_phone(browser, page_file):
    metrics = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    page = opened(browser, page_file)
    for selector in ("[name=devices]", "#split"):
        element = page.find_element("css selector", selector)
        page.execute_script(
            "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element
        )
        top = page.execute_script(
            "return document.getElementById('advice').getBoundingClientRect().top"
        )
        assert 0 <= top < 5, selector
