"""The page of verdicts from results files: what it shows, and what it refuses."""

import copy
import json
import re
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "docs/_ext"))

import verdicts

TABLE_3 = {
    "name": "table3",
    "title": "Table III: accuracy",
    "paper": "SlimFL is ahead | on the <poor> channel.",
    "table": {"headings": ["method", "poor"], "rows": [["SlimFL-1.0x", "60.1 ± 1.0"]]},
    "claims": [
        {
            "text": "SlimFL-1.0x is ahead of Vanilla FL-1.0x",
            "source": "table III, poor",
            "seeds": 3,
            "reason": "Their length may be the reason.",
            "differences": [
                {
                    "larger": "SlimFL-1.0x",
                    "smaller": "Vanilla FL-1.0x",
                    "unit": "points",
                    "mean": 2.5,
                    "low": -1.0,
                    "high": 6.0,
                    "confidence": 0.95,
                    "seeds": 3,
                }
            ],
            "comparisons": [
                {
                    "quantity": "SlimFL-1.0x",
                    "unit": "%",
                    "digits": 0,
                    "seeds": 3,
                    "reached": True,
                    "paper": 65.0,
                    "paper_deviation": 2.9,
                    "ours": 60.125,
                    "ours_deviation": 1.0,
                },
                {
                    "quantity": "ahead by",
                    "unit": "points",
                    "digits": 1,
                    "seeds": 0,
                    "reached": True,
                    "paper": None,
                    "paper_deviation": None,
                    "ours": None,
                    "ours_deviation": None,
                },
            ],
            "verdict": "agrees in order only",
        },
        {"text": "a claim in words", "source": "text", "comparisons": [], "verdict": "not run"},
    ],
    "verdict": "agrees in order only",
    "notes": ["1,000 rounds in the paper.", "fewer rounds"],
    "figures": ["table3.png"],
}
CHOICES = {
    "name": "choices",
    "title": "Batch size",
    "paper": "The paper does not say.",
    "table": {"headings": ["batch", "0.5x"], "rows": [["16", "57"]]},
    "claims": [],
    "verdict": "undecided",
    "notes": [],
    "figures": [],
}


@pytest.fixture
def results(tmp_path):
    """A folder of results, with the exhibits that a test gives."""

    def add(exhibits=(TABLE_3, CHOICES), scale="standard", **changes):
        folder = tmp_path / "reproduction" / scale
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "table3.png").write_bytes(b"a picture")
        document = {
            "scale": scale,
            "command": f"python -m lab reproduce all --scale {scale}",
            "shortened": "fewer rounds",
            "versions": {"slimfl": "1.2.3", "torch": "2.0"},
            "engine": "native",
            "seeds": [0, 1, 2],
            "rule": "within two deviations",
            "exhibits": list(exhibits),
            **changes,
        }
        (folder / "results.json").write_text(json.dumps(document))
        return tmp_path / "reproduction"

    return add


def made(results):
    texts = verdicts.texts(results)
    return "\n".join([texts["verdicts"], texts["exhibits"]]), texts["choices"]


def rows(text):
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_one_row_per_exhibit_with_its_verdict(results):
    text, _ = made(results())
    heading, _, row = rows(text)[:3]
    assert heading == ["exhibit", "what the paper claims", "verdict"]
    assert row == [
        "Table III: accuracy",
        r"SlimFL is ahead \| on the \<poor> channel.",
        "**agrees in order only** (1 of 2 claims)",
    ]
    assert "choices" not in text  # they have a section of their own


def test_every_claim_stands_with_the_papers_numbers_and_ours(results):
    text, _ = made(results())
    claims = [row for row in rows(text) if len(row) == 7][2:]
    assert claims == [
        [
            "SlimFL-1.0x is ahead of Vanilla FL-1.0x",
            "table III, poor",
            "SlimFL-1.0x",
            "65 ± 2.9 %",
            "60.1 ± 1.0 %",
            "agrees in order only. Their length may be the reason.",
            "3",
        ],
        ["", "", "ahead by", "not given", "not run", "", ""],
        [
            "",
            "",
            "SlimFL-1.0x − Vanilla FL-1.0x",
            "",
            "+2.5 points (95% interval -1.0 to +6.0, 3 seeds)",
            "",
            "",
        ],
        ["a claim in words", "text", "", "", "", "not run", ""],
    ]
    assert text.count("<details>") == text.count("</details>") == 1
    assert "* 1,000 rounds in the paper." in text
    assert text.count("fewer rounds") == 1  # not again with every exhibit
    assert "| SlimFL-1.0x | 60.1 ± 1.0 |" in text


def test_commands_versions_seeds_and_the_rule_are_told(results):
    text, _ = made(results())
    for told in (
        "`python -m lab reproduce all --scale standard`",
        "seeds 0, 1, 2",
        "slimfl 1.2.3, torch 2.0",
        "native engine",
        "fewer rounds",
        "The rule: within two deviations",
    ):
        assert told in text


def test_figures_are_those_of_the_results_folder(results):
    text, _ = made(results())
    assert "![Table III: accuracy](results/reproduction/standard/table3.png)" in text


def test_shorter_scales_are_not_shown(results):
    results([{**TABLE_3, "verdict": "differs"}], scale="small")
    text, _ = made(results())
    assert "small" not in text
    assert "differs" not in text


def test_choices_are_a_page_part_of_their_own(results):
    _, text = made(results())
    assert rows(text) == [["batch", "0.5x"], ["---", "---"], ["16", "57"]]


def test_without_results_the_build_says_how_to_make_them(tmp_path):
    with pytest.raises(
        verdicts.ResultsError, match="python -m lab reproduce all vanilla --scale standard"
    ):
        verdicts.texts(tmp_path / "reproduction")


def test_without_measured_choices_the_build_says_so(results):
    with pytest.raises(verdicts.ResultsError, match="choices"):
        made(results([TABLE_3]))


def without(exhibit, key):
    return {name: value for name, value in exhibit.items() if name != key}


def with_claim(**changes):
    changed = copy.deepcopy(TABLE_3)
    changed["claims"][0].update(changes)
    return changed


@pytest.mark.parametrize(
    ("exhibit", "words"),
    [
        ({**TABLE_3, "verdict": "agrees, mostly"}, "'agrees, mostly' in table3 is no verdict"),
        (with_claim(verdict="yes"), "'yes' in table3 is no verdict"),
        (without(TABLE_3, "paper"), "has no 'paper'"),
        ({**TABLE_3, "figures": ["other.png"]}, "other.png, a figure of table3, is missing"),
        ({**TABLE_3, "table": {"headings": ["a", "b"], "rows": [["1"]]}}, "row of table3"),
    ],
)
def test_what_the_page_could_not_show_truly_is_refused(results, exhibit, words):
    folder = results([exhibit, CHOICES])
    with pytest.raises(verdicts.ResultsError, match=re.escape(words)):
        made(folder)


def test_a_torn_file_is_refused_by_its_name(results):
    folder = results()
    (folder / "standard/results.json").write_text('{"scale": "sm')
    with pytest.raises(verdicts.ResultsError, match=r"standard/results\.json cannot be used"):
        made(folder)


def test_the_study_of_vanilla_claims_nothing_before_it_was_run(results):
    assert "no answer" in verdicts.texts(results())["vanilla"]
    headings, paper = ["reading", "0.5x"], ["the paper", "39"]
    study = CHOICES | {"name": "vanilla", "verdict": "no claim", "title": "Readings"}
    for row, answered in ((["a", "not run"], False), (["a", "40"], True)):
        table = {"headings": headings, "rows": [paper, row]}
        folder = results((TABLE_3, CHOICES, study | {"table": table}))
        text, _ = made(folder)
        page = verdicts.texts(folder)["vanilla"]
        assert ("no answer" not in page) is answered
        assert "Readings" not in text  # no verdict, so no row among the paper's
    assert "| a | 40 |" in page


def test_every_run_that_lacks_rounds_is_named(results):
    name, exhibits = "slimfl-good-alpha1-seed2-abc", ["table3", "fig7"]
    run = {"run": name, "rounds_done": 7, "rounds": 80, "needed_for": exhibits}
    text, _ = made(results(missing=[run]))
    assert [name, "7 of 80", "table3, fig7"] in rows(text)


def column(verdict, **more):
    """One setting of table III."""
    numbers = {"ours": 60.12, "ours_deviation": 1.04, "paper": 65.0, "paper_deviation": 2.9}
    kind = {"quantity": "SlimFL-1.0x", "unit": "%", "digits": 0, "seeds": 1, "reached": True}
    comparison = {**kind, **numbers}
    about = {"measure": "accuracy", "channel": "poor", "alpha": 0.1}
    words = {"text": "a", "source": "b", "verdict": verdict, "seeds": 1, "about": about}
    pair = {"larger": "SlimFL-1.0x", "smaller": "Vanilla FL-1.0x", "unit": "points"}
    difference = {**pair, "mean": -2.5, "low": None, "high": None, "seeds": 1}
    return {**words, "comparisons": [comparison], "differences": [difference], **more}


def test_table_3_in_short_shows_finished_settings(results):
    early = [column("differs", seeds_planned=3), column("unfinished"), *TABLE_3["claims"]]
    folder = results([{**TABLE_3, "claims": early}, CHOICES])
    text = verdicts.texts(folder)["table III in short"]
    heading, _, *settings = rows(text)
    assert heading == ["channel and data", "SlimFL-1.0x, %", "verdict", "seeds"]
    assert settings == [["poor, α = 0.1", "60.1 ± 1.0 (65 ± 2.9)", "differs", "1 of 3"]]
    assert "--scale standard" in text
    assert "* SlimFL-1.0x − Vanilla FL-1.0x: -2.5 to -2.5 points, over the settings." in text
    assert made(folder)[0].count("(2 of 4 claims, 1 to 3 of 3 seeds)") == 2
    in_part = "Judged only in part: Table III (2 of 4 claims, 1 to 3 of 3 seeds)."
    assert verdicts.texts(folder)["tally"].count(in_part) == 1


def test_table_3_in_short_counts_the_intervals_that_exclude_zero(results):
    settings = [column("differs") for _ in range(4)]
    for one, (low, high) in zip(settings, [(-4, -1), (-6, 1), (1, 3)], strict=False):
        one["differences"][0] |= {"low": low, "high": high, "seeds": 3, "confidence": 0.95}
    text = verdicts.texts(results([{**TABLE_3, "claims": settings}, CHOICES]))
    assert "; of 3 intervals over seeds (95%), 2 exclude zero." in text["table III in short"]


def test_table_3_in_short_says_so_when_nothing_is_finished(results):
    text = verdicts.texts(results())["table III in short"]
    assert text == "No setting is finished yet."
