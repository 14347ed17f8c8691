"""The report in a real browser: what a person sees is what the metrics say."""

from pathlib import Path
from typing import Any

import pytest

from slimfl.report import write_report
from slimfl.results import summarise

pytestmark = pytest.mark.browser


def opened(browser: Any, path: Path) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(path.as_uri())
    drawn = "return document.documentElement.dataset.drawn === 'true'"
    WebDriverWait(browser, 60).until(lambda b: b.execute_script(drawn))
    return browser


def test_the_page_shows_the_summary(browser, paper_runs, tmp_path):
    page = opened(browser, write_report(paper_runs, tmp_path / "report.html"))
    assert "SlimFL" in page.title
    for row in summarise(paper_runs).groups:
        for width, accuracy in row.accuracy.items():
            cell = page.execute_script(
                "return document.querySelector(arguments[0])",
                f"#closing-table tr[data-method='{row.method}'] [data-key='accuracy.{width}']",
            )
            assert float(cell.get_attribute("data-value")) == accuracy.final.mean
            assert cell.text.startswith(f"{100 * accuracy.final.mean:.1f} ± ")
            assert cell.is_displayed()
    data = page.execute_script(
        "return JSON.parse(document.getElementById('slimfl-data').textContent)"
    )
    assert data["summary"]["groups"][0]["energy_j"]["mean"] == 0.5

    # four curves, each a mean line and the two edges of its band
    traces = page.execute_script(
        "return document.getElementById('accuracy-0').data.map(t => t.name)"
    )
    assert len(traces) == 12
    assert sum(not name.endswith(" band") for name in traces) == 4
    drawn = page.execute_script(
        "return document.querySelectorAll('#accuracy-0 .scatterlayer .trace').length"
    )
    assert drawn == 12
    heat = page.execute_script(
        "const t = document.getElementById('arrivals-1').data[0]; return [t.z, t.text]"
    )
    assert heat == [[[2, 2], [1, 1]], [["segments 1–2"] * 2, ["segment 1"] * 2]]


def test_the_page_is_quiet_and_alone(browser, paper_runs, tmp_path):
    page = opened(browser, write_report(paper_runs, tmp_path / "report.html"))
    assert page.get_log("browser") == []
    names = "return performance.getEntriesByType('resource').map(e => e.name)"
    assert [name for name in page.execute_script(names) if name.startswith("http")] == []
    tools = "return [...document.querySelectorAll('.modebar-btn')].map(b => b.dataset.title)"
    assert set(page.execute_script(tools)) == {
        "Download plot as a PNG",
        "Zoom",
        "Pan",
        "Reset axes",
    }


@pytest.mark.parametrize("width", [390, 1000, 1400])
def test_the_page_fits_the_screen(browser, paper_runs, tmp_path, width):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    page = opened(browser, write_report(paper_runs, tmp_path / "report.html"))
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    edges = page.execute_script(
        "return [...document.querySelectorAll('.plot svg')]"
        ".map(svg => svg.getBoundingClientRect().right)"
    )
    assert max(edges) <= width


def test_plots_follow_a_dark_screen(browser, paper_runs, tmp_path):
    page = opened(browser, write_report(paper_runs, tmp_path / "report.html"))
    colour = "return document.getElementById('accuracy-0').layout.font.color"
    assert page.execute_script(colour) == "#1d2329"
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(page, 20).until(lambda b: b.execute_script(colour) == "#e7eaed")
    assert page.get_log("browser") == []


def test_names_run_nothing(browser, make_run, tmp_path):
    evil = "<img src=x onerror=alert(1)>"
    runs = [make_run(), make_run(name="b", experiment={"model__name": evil})]
    page = opened(browser, write_report(runs, tmp_path / "report.html"))
    assert page.execute_script("return document.images.length") == 0
    assert page.get_log("browser") == []
    assert evil in page.execute_script("return document.querySelector('#closing-table').innerText")
