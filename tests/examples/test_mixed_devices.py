"""The table of the mixed population, with numbers calculated by hand."""

import importlib.util
from pathlib import Path

PATH = Path(__file__).parents[2] / "examples/mixed_devices.py"


def script():
    spec = importlib.util.spec_from_file_location("mixed_devices", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_means_and_paired_differences(make_run):
    runs = []
    for seed, (slim, vanilla) in enumerate([(0.70, 0.60), (0.72, 0.66)]):
        runs.append(make_run("slimfl", seed, {"0.5x": [0.1, 0.5], "1.0x": [slim, slim]}))
        runs.append(make_run("vanilla-1.0x", seed, {"1.0x": [vanilla, vanilla]}))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in script().table(runs)]
    head, _, slim, vanilla = rows
    named = dict(zip(head, vanilla, strict=True))
    assert slim[4] == "71.0 ± 1.4"  # of 70 and 72, with n - 1
    assert named["1.0x, %"] == "63.0 ± 4.2"
    # differences -10 and -6: their deviation is sqrt(8), and t with one degree of freedom 12.706
    assert named["1.0x over SlimFL"] == "-8.0 ± 25.4"
    assert named["0.5x over SlimFL"] == ""
    assert slim[-1] == ""
    assert named["heard, %"] == "100.0 ± 0.0"
