"""The page of the paper's claims from results files: what it shows, and what it refuses."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "docs/_ext"))

import verdicts  # noqa: E402

RESULTS = ROOT / "docs/results/reproduction"
DOCUMENT = json.loads((RESULTS / "standard/results.json").read_text(encoding="utf-8"))


def rows(text):
    return [line for line in text.splitlines() if line.startswith("| ")]


def test_the_fourteen_claims_come_with_number_verdict_and_evidence():
    _, _, *found = rows(verdicts.texts(RESULTS)["claims"])
    assert [row.split(" | ")[0] for row in found] == [f"| C{n}" for n in range(1, 15)]
    assert all(row.count(" | ") == 5 for row in found)
    for row, told in zip(found, DOCUMENT["headlines"], strict=True):
        assert f"**{verdicts.verdict_words(told)}**" in row


def test_every_table_and_figure_has_a_section_with_its_claims_and_pictures():
    found = verdicts.texts(RESULTS)
    apart = {"budget", "choices", "vanilla"}
    shown = [q for q in DOCUMENT["questions"] if q["name"] not in apart]
    assert re.findall(r"^### (.*)$", found["exhibits"], re.MULTILINE) == [q["title"] for q in shown]
    assert len(rows(found["verdicts"])) == len(shown) + 2
    for picture in re.findall(r"\]\((results/\S+?)\)", found["exhibits"] + found["budget"]):
        assert (ROOT / "docs" / picture).is_file(), picture
    for question in DOCUMENT["questions"]:
        assert len(question["claims"]) == sum(
            verdicts.cell(c["text"]) in found["exhibits"] + found["budget"]
            for c in question["claims"]
        )


def test_no_verdict_rests_on_one_seed_and_few_are_preliminary():
    for question in DOCUMENT["questions"]:
        for claim in question["claims"]:
            if claim["seeds"] is not None and claim["verdict"] != "no verdict":
                assert claim["seeds"] > 1
                assert claim["preliminary"] is (claim["seeds"] < 5)


def test_unfinished_runs_are_listed_at_the_end():
    text = verdicts.texts(RESULTS)["runs behind it"]
    assert DOCUMENT["unfinished"] in text
    assert text.index("<details>") > text.index(DOCUMENT["unfinished"])
    assert all(run["run"] in text for run in DOCUMENT["missing"])


def test_cells_cannot_break_the_table():
    assert verdicts.cell("a | b <c>\n d") == "a \\| b \\<c> d"


@pytest.mark.parametrize("text", ["", "{", '{"questions": []}', '{"questions": 1, "headlines": 2}'])
def test_results_that_cannot_be_used_are_refused(text, tmp_path):
    with pytest.raises(verdicts.ResultsError, match="make it with"):
        verdicts.texts(tmp_path)
    (tmp_path / "standard").mkdir()
    (tmp_path / "standard/results.json").write_text(text)
    with pytest.raises(verdicts.ResultsError, match="cannot be used"):
        verdicts.texts(tmp_path)
