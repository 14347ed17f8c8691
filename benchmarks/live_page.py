"""The live page in Chromium: how it keeps up with many long runs, and its picture.

    python benchmarks/live_page.py measure --runs 50 --rounds 1000
    python benchmarks/live_page.py picture results/cells pictures

`measure` makes up runs, opens them on the page, lets a few of them grow, and prints what a person
would feel as JSON. `picture` shows archived runs and saves what the browser shows. Both need
Chromium, chromedriver and selenium.
"""

import argparse
import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from slimfl import experiment as config

#: Started before the page's own scripts: gaps between frames, and tasks of more than 50 ms.
PROBE = """
window.felt = {long_ms: [], gaps_ms: []};
new PerformanceObserver((l) => l.getEntries().forEach((e) => felt.long_ms.push(e.duration)))
  .observe({type: "longtask", buffered: true});
let last = performance.now();
const tick = () => {
  const now = performance.now();
  felt.gaps_ms.push(now - last);
  last = now;
  requestAnimationFrame(tick);
};
requestAnimationFrame(tick);
"""


def line(round: int, devices: int, random: np.random.Generator, level: float) -> str:
    """A round that no run has made, but might have."""
    gains = random.exponential(size=devices)
    decoded = (gains >= 0.25).astype(int) + (gains >= 0.45)
    delivered = [int((decoded > s).sum()) for s in range(2)]
    full = level * (1 - np.exp(-round / 150)) + 0.02 * random.standard_normal()
    accuracy = {"0.5x": float(np.clip(full - 0.04, 0, 1)), "1.0x": float(np.clip(full, 0, 1))}
    record = {
        "round": round, "accuracy": accuracy, "devices": list(range(devices)), "dropped_out": [],
        "refused": [], "gains": gains.tolist(), "decoded": decoded.tolist(),
        "delivered": delivered, "bits_sent": [5e5, 1e6], "bits_decoded": [4e5, 6e5],
        "bits_dropped": [1e5, 4e5], "airtime_s": 0.01, "energy_j": 0.002, "paper_power_mw": 200.0,
        "paper_mflops": 4.0, "seconds": {"training": float(random.uniform(1, 2))},
    }  # fmt: skip
    return json.dumps(record) + "\n"


def make_runs(folder: Path, runs: int, rounds: int, devices: int = 10) -> list[Path]:
    """Made-up run folders: five settings, each under many seeds."""
    paths = []
    for number in range(runs):
        random = np.random.default_rng(number)
        (experiment,) = config.load(None, {
            "rounds": rounds + 100, "seed": number // 5, "federation": {"devices": devices},
            "data": {"alpha": [0.1, 0.3, 1.0, 3.0, 10.0][number % 5]},
        })  # fmt: skip
        path = folder / f"run-{number:02d}"
        path.mkdir(parents=True)
        (path / "experiment.toml").write_text(config.dump(experiment))
        level = 0.6 + 0.05 * (number % 5)
        lines = (line(r, devices, random, level) for r in range(1, rounds + 1))
        (path / "metrics.jsonl").write_text("".join(lines))
        paths.append(path)
    return paths


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


def measure(runs: int, rounds: int, devices: int) -> dict[str, Any]:
    """What a person would feel while the page loads, while runs grow, and at the pointer."""
    with tempfile.TemporaryDirectory() as name, chromium(Path(name) / "profile") as driver:
        folder = Path(name) / "runs"
        paths = make_runs(folder, runs, rounds, devices)
        looks(driver, 1400, 1000, dark=False)
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": PROBE})
        # in thread time, so that what else the machine does is not counted
        driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        with watching(folder) as url:
            begin = time.perf_counter()
            opened(driver, url)
            found = {"until_all_rounds_are_there_s": round(time.perf_counter() - begin, 2)}
            felt = {"while_loading": _felt(driver)}
            for extra in range(1, 21):  # three runs grow
                for path in paths[:3]:
                    with (path / "metrics.jsonl").open("a") as file:
                        random = np.random.default_rng(extra)
                        file.write(line(rounds + extra, devices, random, 0.7))
                time.sleep(0.3)
            felt["while_three_runs_grow"] = _felt(driver)
            for i in range(60):
                at = {"type": "mouseMoved", "x": 200 + 15 * i, "y": 300}
                driver.execute_cdp_cmd("Input.dispatchMouseEvent", at)
            felt["at_the_pointer"] = _felt(driver)
            points = driver.execute_script(
                "return Number(document.querySelector('#accuracy').dataset.points)"
            )
        load = round(os.getloadavg()[0] / (os.cpu_count() or 1), 1)
        size = sum((path / "metrics.jsonl").stat().st_size for path in paths)
        return {
            "runs": runs, "rounds": rounds, "devices": devices, "metrics_mb": round(size / 1e6, 1),
            "points_drawn": points, "load_per_core": load, **found, **felt,
        }  # fmt: skip


def _felt(driver: Any) -> dict[str, float]:
    """Frames since the last call, and the processor time of the page's main thread."""
    take = "const f = felt; window.felt = {long_ms: [], gaps_ms: []}; return f"
    felt = driver.execute_script(take)
    gaps = sorted(felt["gaps_ms"]) or [0.0]
    metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    busy_s = next(each["value"] for each in metrics if each["name"] == "TaskDuration")
    spent_s, driver.spent_s = busy_s - getattr(driver, "spent_s", 0.0), busy_s
    return {
        "seconds": round(sum(gaps) / 1e3, 1),
        "processor_s": round(spent_s, 2),
        "frames": len(gaps),
        "median_frame_ms": round(gaps[len(gaps) // 2], 1),
        "longest_frame_ms": round(gaps[-1], 1),
        "long_tasks": len(felt["long_ms"]),
        "longest_task_ms": round(max(felt["long_ms"], default=0.0), 1),
    }


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
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("--runs", type=int, default=50)
    measuring.add_argument("--rounds", type=int, default=1000)
    measuring.add_argument("--devices", type=int, default=10)
    showing = commands.add_parser("picture")
    showing.add_argument("cells", type=Path)
    showing.add_argument("out", type=Path)
    showing.add_argument("--sizes", nargs="+", default=["1400x1620", "390x1850"])
    showing.add_argument("--themes", nargs="+", default=["light", "dark"])
    asked = parser.parse_args()
    if asked.command == "measure":
        print(json.dumps(measure(asked.runs, asked.rounds, asked.devices), indent=2))
    else:
        picture(asked.cells, asked.out, asked.sizes, asked.themes)
