"""The live page in a real browser: it follows a run, and nothing is lost."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from slimfl.results.per_run import run_summary
from slimfl.results.records import load
from tests.hand_made_runs import line
from tests.report.live.serving import COMMAND, TOKEN, append, until, watching, write_run

pytestmark = pytest.mark.browser

BOTH = {"0.5x": 0.25, "1.0x": 0.75}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("watched")


@pytest.fixture(scope="module")
def served(folder):
    """One server for the tests of this file; each has a folder of its own below it."""
    with watching(folder, seconds=600) as server:
        yield server


def opened(browser: Any, url: str) -> Any:
    browser.get(url)
    browser.execute_script("sessionStorage.clear()")
    browser.get(url)
    until(lambda: browser.execute_script("return document.documentElement.dataset.caughtUp"))
    return browser


def cell(page: Any, path: str, column: str) -> str:
    """What the table shows of the run at a path; empty if it is not there."""
    return page.execute_script(
        "const row = [...document.querySelectorAll('#runs tbody tr')]"
        ".find((r) => r.querySelector('small').textContent === arguments[0]);"
        "return row ? row.querySelector(`[data-id='${arguments[1]}']`).textContent : ''",
        path,
        column,
    )


def names(page: Any) -> list[str]:
    return page.execute_script(
        "return [...document.querySelectorAll('#runs tbody small')].map((e) => e.textContent)"
    )


def canvas(page: Any, id: str, key: str) -> int:
    script = "return document.querySelector(arguments[0]).dataset[arguments[1]]"
    return int(page.execute_script(script, f"#{id}", key) or 0)


def put(page: Any, id: str, value: str, event: str = "input") -> None:
    """Give a control a value as a user does."""
    page.execute_script(
        "const control = document.getElementById(arguments[0]);"
        "control.value = arguments[1]; control.dispatchEvent(new Event(arguments[2]))",
        id,
        value,
        event,
    )


def row(page: Any, path: str) -> Any:
    return page.execute_script(
        "return [...document.querySelectorAll('#runs tbody tr')]"
        ".find((r) => r.querySelector('small').textContent === arguments[0])",
        path,
    )


def where(folder: Path, name: str) -> str:
    return f"{folder.name}/{name}"


def test_a_run_goes_on_and_a_reload_loses_nothing(browser, served, folder):
    page = opened(browser, served.url)
    running = subprocess.Popen(
        [*COMMAND, "run", "--method", "slimfl", "--rounds", "6", "--devices", "4",
         "--set", "data.dataset=synthetic", "--set", "data.train_samples=300",
         "--set", "training.steps=2", "--out", str(folder / "real"), "--json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        name = where(folder, "real/slimfl-seed0")
        # the folder is new; its rounds come while the page is open
        until(lambda: cell(page, name, "rounds").startswith(("1", "2", "3", "4", "5", "6")))
        assert running.wait(timeout=120) == 0
    finally:
        running.kill()
        running.wait()
    until(lambda: cell(page, name, "rounds") == "6 / 6")
    until(lambda: cell(page, name, "state") == "finished")
    summary = run_summary(load(folder / "real/slimfl-seed0"))

    def shown():
        return {key: cell(page, name, f"accuracy.{key}") for key in summary["accuracy"]}

    expected = {key: f"{100 * value['final']:.1f}" for key, value in summary["accuracy"].items()}
    assert shown() == expected
    until(lambda: canvas(page, "accuracy", "points") >= 12)
    page.refresh()
    until(lambda: cell(page, name, "rounds") == "6 / 6")
    until(lambda: shown() == expected)
    until(lambda: canvas(page, "accuracy", "points") >= 12)
    assert page.get_log("browser") == []


def test_the_chosen_run_in_detail(browser, served, folder):
    run = write_run(folder / "detail", rounds=5, asked=9)
    page = opened(browser, served.url)
    until(lambda: where(folder, "detail") in names(page))
    page.execute_script("arguments[0].click()", row(page, where(folder, "detail")))
    until(lambda: canvas(page, "arrivals", "rounds") == 5)
    assert canvas(page, "arrivals", "devices") == 2
    assert canvas(page, "gains", "points") == 10
    assert canvas(page, "gains", "thresholds") == 2
    append(run, line(6, BOTH))
    until(lambda: canvas(page, "arrivals", "rounds") == 6)
    # a replay stops at a round
    put(page, "until", "2")
    until(lambda: canvas(page, "arrivals", "rounds") == 2)
    # a resumed run cuts its metrics
    metrics = run / "metrics.jsonl"
    put(page, "until", "6")
    kept = b"".join(metrics.read_bytes().splitlines(keepends=True)[:3])
    metrics.write_bytes(kept)
    until(lambda: cell(page, where(folder, "detail"), "rounds") == "3 / 9")
    until(lambda: canvas(page, "arrivals", "rounds") == 3)
    assert page.get_log("browser") == []


def test_axes_sorting_and_hiding(browser, served, folder):
    for number, accuracy in enumerate((0.3, 0.9, 0.6)):
        run = write_run(folder / f"sorted/run-{number}", rounds=0, asked=9)
        append(run, line(1, {"0.5x": accuracy, "1.0x": accuracy}))
        append(run, line(2, {"0.5x": accuracy, "1.0x": accuracy}))
    page = opened(browser, served.url)
    put(page, "filter", "sorted/")
    mine = [where(folder, f"sorted/run-{n}") for n in range(3)]
    until(lambda: names(page) == mine)
    head = "document.querySelector('#runs [data-id=\"accuracy.1.0x\"] button').click()"
    page.execute_script(head)
    until(lambda: names(page) == [mine[1], mine[2], mine[0]])
    page.execute_script(head)
    until(lambda: names(page) == [mine[0], mine[2], mine[1]])
    lines = until(lambda: canvas(page, "accuracy", "lines"))
    page.execute_script("document.querySelector('#runs tbody input').click()")
    until(lambda: canvas(page, "accuracy", "lines") == lines - 2)
    before = canvas(page, "accuracy", "points")
    for axis in ("compute_s", "airtime_s", "energy_j", "sent_mb", "round"):
        job = canvas(page, "accuracy", "job")
        put(page, "axis", axis, "change")
        until(lambda job=job: canvas(page, "accuracy", "job") > job)
        assert canvas(page, "accuracy", "points") == before
    # news that come faster than it can draw do not keep it from drawing
    job = canvas(page, "accuracy", "job")
    change = "document.getElementById('axis').dispatchEvent(new Event('change'))"
    page.execute_script(f"window.hurry = setInterval(() => {{ {change} }}, 5)")
    until(lambda: canvas(page, "accuracy", "job") > job + 1)
    page.execute_script("clearInterval(window.hurry)")
    # a reload keeps what was chosen
    page.refresh()
    until(lambda: names(page) == [mine[0], mine[2], mine[1]])
    until(lambda: canvas(page, "accuracy", "lines") == lines - 2)
    page.execute_script("document.getElementById('hide-all').click()")
    until(lambda: canvas(page, "accuracy", "lines") == lines - 6)
    page.execute_script("document.getElementById('show-all').click()")
    until(lambda: canvas(page, "accuracy", "lines") == lines)
    assert page.get_log("browser") == []


def test_names_run_nothing(browser, served, folder):
    evil = "<img src=x onerror=alert(1)>"
    run = write_run(folder / evil, asked=9)
    text = (run / "experiment.toml").read_text()
    (run / "experiment.toml").write_text(text.replace('name = "ul-mobilenet"', f'name = "{evil}"'))
    assert evil in (run / "experiment.toml").read_text()
    append(run, {"round": 3, "accuracy": evil})
    page = opened(browser, served.url)
    until(lambda: where(folder, evil) in names(page))
    until(lambda: cell(page, where(folder, evil), "state").startswith("damaged: line 3"))
    assert page.execute_script("return document.images.length") == 0
    assert page.get_log("browser") == []


def test_the_report_opens_from_the_page(browser, served, folder):
    write_run(folder / "reported")
    page = opened(browser, served.url)
    until(lambda: where(folder, "reported") in names(page))
    page.get(
        row(page, where(folder, "reported")).find_element("tag name", "a").get_attribute("href")
    )
    until(lambda: page.execute_script("return document.documentElement.dataset.drawn === 'true'"))
    assert "SlimFL" in page.title
    assert page.execute_script("return window.origin") == "null"
    assert page.get_log("browser") == []


def test_a_server_that_comes_back(browser, tmp_path):
    """The page waits for it and shows what is new."""
    run = write_run(tmp_path / "runs/run", asked=9)
    with watching(tmp_path / "runs") as server:
        page = opened(browser, server.url)
        until(lambda: cell(page, "runs/run", "rounds") == "2 / 9")
        port = server.port
    until(
        lambda: "lost" in page.execute_script("return document.getElementById('status').className")
    )
    assert cell(page, "runs/run", "rounds") == "2 / 9"
    append(run, line(3, BOTH))
    page.execute_script("window.same = true")
    with watching(tmp_path / "runs", port=port):
        until(lambda: cell(page, "runs/run", "rounds") == "3 / 9")
        until(lambda: canvas(page, "accuracy", "points") == 6)
        assert page.execute_script("return window.same")
    assert TOKEN in page.current_url


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_the_screen(browser, served, folder, width, scheme):
    write_run(folder / f"fits-{width}-{scheme}", "vanilla-1.0x")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    page = opened(browser, served.url)
    until(lambda: canvas(page, "gains", "points"))
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    if width == 1400:  # no column has to be scrolled to
        table = "const box = document.querySelector('.scroll'); return box.scrollWidth"
        assert page.execute_script(f"{table} - box.clientWidth") == 0
    ground = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(251, 251, 250)", "dark": "rgb(20, 24, 28)"}[scheme]
