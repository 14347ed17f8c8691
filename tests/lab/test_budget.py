"""The paper's own comparison: who can pay for how many rounds, and who is ahead then."""

import json
import lzma
from pathlib import Path

import pytest
from scipy import stats

from lab.exhibits import budget
from lab.exhibits.accuracies import grid_arm, grid_cells
from lab.exhibits.budget import ACCOUNTINGS, seeds_of
from lab.scale import scale
from tests.lab.test_exhibits import EXACT, rising

CELLS = Path(__file__).parents[2] / "results/cells"
STANDARD = scale("standard")


def test_both_vanilla_runs_stop_where_they_have_spent_slimfls_budget():
    runs = rising(grid_cells(EXACT))  # 8 rounds; accuracy is the round's number
    (one, *_) = seeds_of(EXACT, runs, "poor", 1.0).values()
    archived, by_size, papers = (one.affordable(each) for each in ACCOUNTINGS)
    assert archived == by_size == int(8 * 3 / 5)  # SlimFL takes what Vanilla FL-1.0x takes
    assert papers == 4  # half of the rounds
    assert one.times(ACCOUNTINGS[0]) == pytest.approx(5 / 3)
    # last half of 8 rounds (5 to 8) over the last half of 4 (3 and 4)
    assert one.lead("1.0x", 0.5, papers) == pytest.approx(6.5 - 3.5)
    rows = budget.answer(EXACT, runs).tables[0].rows
    assert rows[0] == ["good, α = 0.1", "0.5x", "2", "+0.0 ± 0.0", "+3.0 ± 0.0", "+3.0 ± 0.0",
                       "+3.0 ± 0.0"]  # fmt: skip


def lines(cell):
    raw = lzma.decompress((CELLS / cell.name / "metrics.jsonl.xz").read_bytes())
    return [json.loads(line) for line in raw.splitlines()]


def test_the_published_row_follows_from_the_archives_files_by_plain_loops():
    """Poor channel, alpha = 1, full width, the paper's accounting: two runs at twice the power."""
    leads = []
    arms = [grid_arm("poor", 1.0, m).cells(STANDARD) for m in ("slimfl", "vanilla-1.0x")]
    for slim, vanilla in zip(*arms, strict=True):
        own, other = lines(slim)[:80], lines(vanilla)[:40]
        ours = sum(line["accuracy"]["1.0x"] for line in own[70:80]) / 10
        theirs = sum(line["accuracy"]["1.0x"] for line in other[35:40]) / 5
        leads.append(100 * (ours - theirs))
    half = stats.t.ppf(0.975, 2) * stats.tstd(leads) / 3**0.5
    text = (CELLS.parents[1] / "docs/results/reproduction/standard/results.json").read_text()
    (found,) = [q for q in json.loads(text)["questions"] if q["name"] == "budget"]
    (row,) = [r for r in found["tables"][0]["rows"] if r[:2] == ["poor, α = 1", "1.0x"]]
    assert row[-1] == f"{sum(leads) / 3:+.1f} ± {half:.1f}"
