"""What the page of the reproduction says about more rounds, against plain loops over the files."""

import json
import lzma
import sys
from pathlib import Path

import pytest
from scipy.stats import t

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "docs/_ext")]

import growth  # noqa: E402

CELLS = ROOT / "results/cells"


def accuracies(name, width):
    raw = lzma.decompress((CELLS / name / "metrics.jsonl.xz").read_bytes())
    return [100 * json.loads(line)["accuracy"][width] for line in raw.splitlines()]


def rows(text):
    return [[word.strip() for word in line.strip("|").split("|")] for line in text.splitlines()]


def test_runs_with_further_rounds_are_shown_as_they_go_on():
    headings, _, *found = rows(growth.further_rounds(CELLS))
    (row,) = [row for row in found if row[0] == "SlimFL-1.0x, poor, α = 1"]
    curve = accuracies("slimfl-poor-alpha1-seed0-18942ad03a321a53", "1.0x")
    assert len(curve) > 100
    for end in (40, 100):
        mean = sum(curve[end - 10 : end]) / 10
        assert row[headings.index(f"up to {end}")] == f"{mean:.1f}"
    assert row[-1] == "84 ± 1.4"
    assert row[headings.index("`standard` reads")] == "80"


def test_leads_are_means_over_thirds_and_seeds():
    keys = [
        ("f8b9ed7683b97723", "060ad82c431819fd"),
        ("dcc395d06e9d7668", "fb0a0c081ff719d1"),
        ("14ee07ddc95b2d83", "7e53d3ce599e7d52"),
    ]
    last = []  # rounds 54 to 80
    for seed, (key, other_key) in enumerate(keys):
        ours = accuracies(f"slimfl-poor-alpha10-seed{seed}-{key}", "1.0x")[53:80]
        theirs = accuracies(f"vanilla-1.0x-poor-alpha10-seed{seed}-{other_key}", "1.0x")[53:80]
        last.append(sum(one - other for one, other in zip(ours, theirs, strict=True)) / 27)
    mean = sum(last) / 3
    deviation = (sum((each - mean) ** 2 for each in last) / 2) ** 0.5
    half = t.ppf(0.975, 2) * deviation / 3**0.5
    found = rows(growth.leads_by_thirds(CELLS))
    (row,) = [row for row in found if row[:2] == ["poor, α = 10", "1.0x"]]
    assert row[4:] == [f"{mean:+.1f} ± {half:.1f}", "3", "+5"]  # table III: 87 and 82


def test_an_archive_without_runs_says_so(tmp_path):
    assert growth.further_rounds(tmp_path) == "No run has more rounds yet.\n"
    assert "| not run | not run | not run | 0 | +17 |" in growth.leads_by_thirds(tmp_path)


@pytest.mark.parametrize("seeds", [1, 2])
def test_one_seed_has_no_interval(seeds):
    assert ("±" in growth._lead({0: 1.0, 1: 2.0} if seeds == 2 else {0: 1.0})) == (seeds == 2)
