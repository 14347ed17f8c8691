"""The report in a real browser shows what the metrics say."""

import csv
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from slimfl.report.pages.run_report import write_report
from slimfl.results.summary import summarise

pytestmark = pytest.mark.browser

LINE, AREA = "[aria-label='line'] path", "[aria-label='area'] path"


def opened(browser: Any, path: Path) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(path.as_uri())
    drawn = "return document.documentElement.dataset.drawn === 'true'"
    WebDriverWait(browser, 60).until(lambda b: b.execute_script(drawn))
    return browser


def click(page: Any, element: Any) -> None:
    page.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element
    )
    element.click()


def test_the_page_shows_the_summary(browser, paper_runs, tmp_path):
    page = opened(browser, write_report(paper_runs, tmp_path / "report.html"))
    assert "SlimFL" in page.title
    for row in summarise(paper_runs).groups:
        for width in row.widths:
            mean = row.accuracy_mean(width)
            cell = page.execute_script(
                "return document.querySelector(arguments[0])",
                f"#closing-table tr[data-method='{row.method}'] [data-key='accuracy.{width}']",
            )
            assert float(cell.get_attribute("data-value")) == mean
            assert cell.text.startswith(f"{100 * mean:.1f} ± ")
            assert cell.is_displayed()
    data = page.execute_script(
        "return JSON.parse(document.getElementById('slimfl-data').textContent)"
    )
    assert data["summary"]["groups"][0]["total.energy_j"]["mean"] == 0.5

    # four curves, each a mean line and a band over its two seeds
    count = "return document.querySelectorAll('#accuracy-0 ' + arguments[0]).length"
    assert [page.execute_script(count, kind) for kind in (LINE, AREA)] == [4, 4]
    cells = page.execute_script(
        "return [...document.querySelectorAll('#arrivals-2 .cells path')]"
        ".map(p => p.getAttribute('d'))"
    )
    # two rounds of two devices: both segments of the one, one segment of the other
    assert [d.count("M") for d in cells] == [2, 2]


def test_curves_are_hidden_and_shown_by_their_names(browser, paper_runs, tmp_path):
    page = opened(browser, write_report(paper_runs, tmp_path / "report.html"))
    count = f'return document.querySelectorAll("#accuracy-0 {LINE}").length'
    names = page.find_elements("css selector", "#accuracy .chart-entry")
    assert [name.text for name in names] == [
        "SlimFL, 0.5x", "SlimFL, 1.0x", "Vanilla FL-0.5x, 0.5x", "Vanilla FL-1.0x, 1.0x",
    ]  # fmt: skip
    click(page, names[1])
    assert page.execute_script(count) == 3
    assert names[1].get_attribute("aria-pressed") == "false"
    click(page, names[1])
    assert page.execute_script(count) == 4


def test_the_pointer_reads_all_curves_of_a_round(browser, paper_runs, tmp_path):
    from selenium.webdriver import ActionChains

    page = opened(browser, write_report(paper_runs, tmp_path / "report.html"))
    plot = page.find_element("id", "accuracy-0")
    page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", plot)
    ActionChains(page).move_to_element_with_offset(plot, 300, 0).perform()
    tip = page.find_element("css selector", "#accuracy-0 .chart-tip").text.split("\n")
    assert tip[0] == "round 2"
    assert tip[1:] == [
        "SlimFL, 1.0x", "85.0 % (80.0 to 90.0)", "Vanilla FL-1.0x, 1.0x", "75.0 % (70.0 to 80.0)",
        "SlimFL, 0.5x", "65.0 % (60.0 to 70.0)", "Vanilla FL-0.5x, 0.5x", "55.0 % (50.0 to 60.0)",
    ]  # fmt: skip


def test_a_part_is_enlarged_and_the_whole_comes_back(browser, paper_runs, tmp_path):
    from selenium.webdriver import ActionChains

    page = opened(browser, write_report(paper_runs, tmp_path / "report.html"))
    plot = page.find_element("id", "accuracy-0")
    page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", plot)
    whole = page.find_element("css selector", "#accuracy .chart-tool")
    assert not whole.is_displayed()
    before = ticks(page, "accuracy-0")
    actions = ActionChains(page).move_to_element_with_offset(plot, 100, 0).click_and_hold()
    actions.move_by_offset(250, 0).release().perform()
    assert whole.is_displayed()
    whole.click()
    assert ticks(page, "accuracy-0") == before


def ticks(page: Any, plot: str) -> list[str]:
    """The numbers below a plot, from left to right."""
    return page.execute_script(
        "return [...document.querySelectorAll(`#${arguments[0]} [aria-label='x-axis tick label'] "
        "text`)].map(t => t.textContent)",
        plot,
    )


@pytest.mark.parametrize("rounds", [1, 2, 3, 7, 30, 12_345])
def test_ticks_are_whole_rounds(browser, make_run, tmp_path, rounds):
    run = make_run(curves={"1.0x": [0.5]}, method="vanilla-1.0x", experiment={"rounds": rounds})
    first = run.lines[0]
    run.lines[:] = [first.model_copy(update={"round": i + 1}) for i in range(rounds)]
    page = opened(browser, write_report([run], tmp_path / "report.html"))
    for plot in ("accuracy-0", "arrivals-2"):
        shown = [int(text.replace(",", "")) for text in ticks(page, plot)]
        assert shown, plot
        assert shown == sorted(set(shown))
        assert 0 <= shown[0] <= shown[-1] <= max(2, rounds)


def download_buttons(page: Any) -> list[Any]:
    page.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    found = page.find_elements("css selector", ".chart-tool")
    return [button for button in found if button.text in ("CSV", "SVG")]


def downloads(page: Any) -> dict[str, str]:
    """What the buttons of every figure give, by the name of the file.

    Chromium holds back downloads after the tenth, so they are taken before they reach it.
    """
    page.execute_script(
        """window.taken = {};
        let last = null;
        URL.createObjectURL = (blob) => { last = blob; return "#"; };
        HTMLAnchorElement.prototype.click = function () { window.taken[this.download] = last; };"""
    )
    for button in download_buttons(page):
        click(page, button)
    return page.execute_async_script(
        """const done = arguments[0], names = Object.keys(window.taken);
        Promise.all(names.map((name) => window.taken[name].text()))
          .then((texts) => done(Object.fromEntries(names.map((name, i) => [name, texts[i]]))));"""
    )


def test_the_buttons_of_a_figure_write_files(browser, make_run, tmp_path):
    page = opened(browser, write_report([make_run()], tmp_path / "report.html"))
    folder = tmp_path / "files"
    folder.mkdir()
    page.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)}
    )
    for button in download_buttons(page)[:2]:
        click(page, button)
    until = time.monotonic() + 60
    while {path.name for path in folder.iterdir()} != {
        "slimfl-accuracy-0.csv",
        "slimfl-accuracy-0.svg",
    }:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert page.get_log("browser") == [], "the policy of the page allows it"


def test_every_figure_comes_as_csv_and_svg(browser, paper_runs, tmp_path):
    page = opened(browser, write_report(paper_runs, tmp_path / "report.html"))
    files = downloads(page)
    plots = page.execute_script("return [...document.querySelectorAll('.plot')].map(p => p.id)")
    assert set(files) == {f"slimfl-{plot}.{kind}" for plot in plots for kind in ("csv", "svg")}
    for name, text in files.items():
        if name.endswith(".svg"):
            tags = {
                element.tag.partition("}")[2] for element in ElementTree.fromstring(text).iter()
            }
            assert "text" in tags
            assert not tags & {"script", "foreignObject", "a", "image"}
    rows = list(csv.reader(files["slimfl-accuracy-0.csv"].splitlines()))
    assert rows[0] == [
        "curve", "round", "accuracy on the test set, %", "lowest seed", "highest seed",
    ]  # fmt: skip
    assert rows[1:3] == [
        ["SlimFL, 0.5x", "1", "55", "50", "60"],
        ["SlimFL, 0.5x", "2", "65", "60", "70"],
    ]
    assert len(rows) == 1 + 4 * 2
    rows = list(csv.reader(files["slimfl-arrivals-2.csv"].splitlines()))
    assert rows == [
        ["round", "device", "arrived"],
        *[[r, d, words] for r in "12" for d, words in (("0", "segments 1–2"), ("1", "segment 1"))],
    ]
    rows = list(csv.reader(files["slimfl-bits-6.csv"].splitlines()))
    assert rows[1:3] == [["SlimFL", "segment 1", "2", "0"], ["SlimFL", "segment 2", "2", "2"]]
    rows = list(csv.reader(files["slimfl-partition-7.csv"].splitlines()))
    assert rows[1:] == [["0", "30", "10"], ["1", "0", "60"]]
    assert "SlimFL, 1.0x" in files["slimfl-accuracy-0.svg"], "the file has its own legend"


def test_a_name_in_a_csv_is_no_formula(browser, make_run, tmp_path):
    names = ["=HYPERLINK(1)", "+1", "-1", "@x", "plain"]
    page = opened(browser, write_report([make_run()], tmp_path / "report.html"))
    cells = page.execute_script(
        """const plots = JSON.parse(document.getElementById("slimfl-plots").textContent);
        const plot = plots["accuracy-0"], place = document.createElement("div");
        document.body.append(place);
        return arguments[0].map((name) => {
          const named = { ...plot, series: [{ ...plot.series[0], name }] };
          return slimflCharts.mount(place, named, "x").csvFile().split("\\r\\n")[1];
        })""",
        names,
    )
    assert [cell.split(",")[0] for cell in cells] == [
        "'=HYPERLINK(1)",
        "'+1",
        "'-1",
        "'@x",
        "plain",
    ]


def test_a_folded_heat_map_is_drawn_in_full_width_when_opened(browser, make_run, tmp_path):
    runs = [make_run(), make_run(name="b", experiment={"radio__channel": "good"})]
    page = opened(browser, write_report(runs, tmp_path / "report.html"))
    drawn = "[...document.querySelectorAll('#arrivals .chart-stage > svg')]"
    wide = f"return {drawn}.map(s => s.clientWidth)"
    page.execute_script("document.querySelectorAll('#arrivals details')[1].open = true")
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(page, 10).until(lambda b: len(set(b.execute_script(wide))) == 1)


@pytest.mark.parametrize("width", [390, 1000, 1400])
def test_the_page_fits_the_screen(browser, paper_runs, tmp_path, width):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    page = opened(browser, write_report(paper_runs, tmp_path / "report.html"))
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    edges = page.execute_script(
        "return [...document.querySelectorAll('.chart-stage > svg')]"
        ".map(svg => svg.getBoundingClientRect().right)"
    )
    assert max(edges) <= width


def test_the_fixed_column_leaves_room_for_numbers_on_a_phone(browser, make_run, tmp_path):
    metrics = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    keys = {"radio__channel": "good", "data__alpha": 0.1, "data__min_samples": 3}
    runs = [make_run(), make_run(name="b", experiment=keys)]
    page = opened(browser, write_report(runs, tmp_path / "report.html"))
    wide = page.execute_script(
        "return [...document.querySelectorAll('table tbody th')].map(t => t.clientWidth)"
    )
    assert 0 < max(wide) <= 195


def test_plots_follow_a_dark_screen(browser, paper_runs, tmp_path):
    page = opened(browser, write_report(paper_runs, tmp_path / "report.html"))
    colour = "return getComputedStyle(document.querySelector('#accuracy-0 svg')).color"
    first = "#accuracy-0 [aria-label='line'] g"
    line = f'return document.querySelector("{first}").getAttribute("stroke")'
    assert page.execute_script(colour) == "rgb(29, 35, 41)"
    light = page.execute_script(line)
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(page, 20).until(lambda b: b.execute_script(colour) == "rgb(231, 234, 237)")
    assert page.execute_script(line) != light
    assert page.get_log("browser") == []
