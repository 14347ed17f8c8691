"""The page of planned questions: no number of an unfinished one, and what its arms share."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import fragments  # noqa: E402

from lab.plan import load, names  # noqa: E402

ANSWERED = json.loads((ROOT / "docs/results/plans/superposition.json").read_text("utf-8"))
ALL = fragments.documents()


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The page with other results of the plan `superposition`, or with none at all."""
    folder = tmp_path / "plans"
    folder.mkdir()
    monkeypatch.setattr(fragments, "RESULTS", tmp_path)

    def show(answered=True, **changes):
        if answered:
            (folder / "superposition.json").write_text(json.dumps(ANSWERED | changes))
        return fragments.texts({**ALL, "planned": fragments.planned()})["plans"]

    return show


def section(text):
    begin = text.index("## " + load("superposition").plan.title)
    return text[begin:].split("\n## ")[0]


def test_every_plan_has_a_section_with_what_was_expected(page):
    text = page(answered=False)
    for name in names():
        assert f"## {load(name).plan.title}\n" in text
    assert text.count("Expected before the runs:") == text.count("**Unfinished:**") == len(names())


@pytest.mark.parametrize("missing", [0, 1])
def test_nothing_is_judged_before_all_runs_are_there(missing, page):
    shown = section(page(finished=ANSWERED["planned"] - missing))
    assert ("**Unfinished:**" in shown) == bool(missing)
    assert ("told apart?" in shown) == (not missing)
    mean = ANSWERED["contrasts"][0]["mean"]
    assert (f"{mean:+.2f}" in shown) == (not missing)


def test_it_names_the_arms_that_agree_in_a_budget(page):
    shown = section(page())
    assert "airtime (all); transmit energy (all); computing (SlimFL, SHeteroFL)" in shown


@pytest.mark.parametrize("outside", [0, 3])
def test_runs_outside_the_plan_are_marked(outside, page):
    marked = f"**{outside} runs are outside the plan.**" in section(
        page(**{"outside the plan": outside})
    )
    assert marked == bool(outside)


def test_every_comparison_names_the_budgets_that_agreed(page):
    rows = [row for row in section(page()).splitlines() if " | " in row]
    train_alike = next(row for row in rows if row.startswith("| superposition, full width"))
    assert "| airtime, transmit energy, computing |" in train_alike
    one_width = next(row for row in rows if row.startswith("| SlimFL or Vanilla FL-1.0x:"))
    assert "| airtime, transmit energy |" in one_width
    arms = [
        dict(arm, spent=arm["spent"] | {"airtime": n}) for n, arm in enumerate(ANSWERED["arms"])
    ]
    longer = section(page(arms=arms))
    assert "| transmit energy, computing |" in longer
