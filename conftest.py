"""One thread per test process, one browser for the pages, and reports that fit on a screen."""

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
# trackers that are installed stay on this machine
os.environ |= {
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
    "WANDB_ERROR_REPORTING": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
}

import pytest
import torch

from tests.command import here  # noqa: F401, a fixture for all
from tests.hand_made_runs import make_run, paper_runs  # noqa: F401, fixtures for all
from tests.outcomes import absent, needed, shortened

torch.set_num_threads(1)

# A job in the background of a shell script ignores Ctrl-C, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--torture", action="store_true", help="run what is marked torture, too")
    parser.addoption("--long", action="store_true", help="show all lines of every failure")
    parser.addoption(
        "--complete",
        action="store_true",
        help="fail, not skip, where an optional package is absent",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # forks come first: a process whose other tests have started Ray may crash when it forks
    items.sort(key=lambda item: "torture" not in item.path.parts)
    if config.getoption("--torture"):
        return
    left_out = [item for item in items if item.get_closest_marker("torture")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    report = yield
    if report.failed and (why := needed(str(report.longrepr), collector.config)):
        # a module that was left half imported would be found by the tests that come later
        for name, module in list(sys.modules.items()):
            if getattr(module, "__file__", None) == str(collector.path):
                del sys.modules[name]
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"Skipped: {why}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.failed:
        said = "\n".join([str(report.longrepr), *(text for _, text in report.sections)])
        if why := needed(said, item.config):
            path, line, _ = report.location
            report.outcome, report.longrepr = "skipped", (path, line or 0, f"Skipped: {why}")
        elif not item.config.getoption("--long"):
            if (short := shortened(str(report.longrepr))) != str(report.longrepr):
                crash = getattr(report.longrepr, "reprcrash", None)
                reason = crash.message.splitlines()[0] if crash else ""
                report.longrepr = f"{reason}\n{short}"
            report.sections = [(name, shortened(text)) for name, text in report.sections]
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say in one line each how many tests were skipped and why."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reasons[str(report.longrepr[-1]).removeprefix("Skipped: ")] += 1
    for why, count in sorted(reasons.items()):
        terminalreporter.write_line(f"skipped: {count} test{'s' * (count > 1)}: {why}")


CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")


@pytest.fixture(scope="module")
def chromium(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """One browser for all tests: its start takes longer than they do."""
    if not (CHROMIUM.exists() and DRIVER.exists()):
        message = f"{CHROMIUM} and {DRIVER} are needed: apt install chromium chromium-driver"
        absent(request.config, message)
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--window-size=1280,1000",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture
def browser(chromium: Any) -> Any:
    """The browser as if it were new."""
    chromium.get("about:blank")
    chromium.get_log("browser")
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    return chromium
