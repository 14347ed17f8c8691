"""What archived runs look like on the live page, as pictures.

    python benchmarks/live_page.py results/cells docs/_static --sizes 1400x1620 --themes light

Needs Chromium, chromedriver and selenium.
"""

import argparse
import json
import lzma
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait


def unpack(cells: Path, folder: Path) -> None:
    """Archived runs as run folders."""
    for cell in sorted(cells.iterdir()):
        target = folder / cell.name.rpartition("-")[0]
        target.mkdir(parents=True)
        shutil.copy(cell / "experiment.toml", target)
        packed = (cell / "metrics.jsonl.xz").read_bytes()
        (target / "metrics.jsonl").write_bytes(lzma.decompress(packed))


@contextmanager
def watching(folder: Path) -> Iterator[str]:
    """`slimfl watch` on the folder; yields the address."""
    server = subprocess.Popen(
        [sys.executable, "-c", "from slimfl.cli import main; main()", "watch", str(folder),
         "--port", "0", "--json", "--seconds", "600"],
        stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert server.stdout is not None
    try:
        text = ""
        while not text.endswith("}\n"):
            text += server.stdout.readline()
        yield json.loads(text)["url"]
    finally:
        server.terminate()
        server.wait()


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """A browser without a window."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     f"--user-data-dir={profile}"):  # fmt: skip
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        yield driver
    finally:
        driver.quit()


def looks(driver: Any, width: int, height: int, dark: bool) -> None:
    """The screen that the page meets."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})


def opened(driver: Any, url: str) -> None:
    """Wait until everything that is there is on the page."""
    driver.get(url)
    ready = "return document.documentElement.dataset.caughtUp === 'true'"
    WebDriverWait(driver, 120).until(lambda d: d.execute_script(ready))
    drawn = "return document.querySelector('#gains').dataset.points > 0"
    WebDriverWait(driver, 60).until(lambda d: d.execute_script(drawn))


def picture(cells: Path, out: Path, sizes: list[str], themes: list[str]) -> None:
    """Save what archived runs look like on the page."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, chromium(Path(name) / "profile") as driver:
        unpack(cells, Path(name) / "runs")
        with watching(Path(name) / "runs") as url:
            for size in sizes:
                for theme in themes:
                    width, height = map(int, size.split("x"))
                    looks(driver, width, height, theme == "dark")
                    opened(driver, url)
                    time.sleep(1)
                    driver.save_screenshot(str(out / f"live-{theme}-{width}.png"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cells", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sizes", nargs="+", default=["1400x1620", "390x1850"])
    parser.add_argument("--themes", nargs="+", default=["light", "dark"])
    picture(**vars(parser.parse_args()))
