"""Marked places of the pages, what is written there, and pictures for light and dark pages."""

import json
import lzma
import re
import sys
from pathlib import Path

import pytest
from scipy.stats import t

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import fragments  # noqa: E402

from lab import growth, pictures  # noqa: E402
from lab.exhibits.accuracies import grid_arm  # noqa: E402
from lab.headlines import story  # noqa: E402
from lab.scale import scale  # noqa: E402

PAGE = """before
<!-- fragment: numbers -->
old
<!-- end of fragment -->
between
<!-- fragment: code twice.py from def -->
<!-- end of fragment -->
after
"""


@pytest.fixture
def page(tmp_path):
    (tmp_path / "twice.py").write_text('"""Head."""\n\ndef twice(x):\n    return 2 * x\n')
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


def test_a_marked_place_is_written_anew_and_the_rest_stays(page):
    text = fragments.filled(page, PAGE, {"numbers": "| 1 |\n"})
    assert "old" not in text
    assert "\n\n| 1 |\n\n<!-- end" in text
    assert "```python\ndef twice(x):\n    return 2 * x\n```" in text
    assert "Head" not in text
    assert [line for line in text.splitlines() if line in ("before", "between", "after")] == [
        "before", "between", "after",
    ]  # fmt: skip
    assert fragments.filled(page, text, {"numbers": "| 1 |"}) == text  # nothing grows


def test_a_fragment_that_nobody_makes_is_named(page):
    with pytest.raises(fragments.StaleError, match="no fragment 'numbers'"):
        fragments.filled(page, PAGE, {})


@pytest.mark.parametrize(
    ("other", "same"),
    [("M 1.0 2.0 red", True), ("M 1.004 2 red", True), ("M 1.02 2.0 red", False),
     ("M 1.0 2.0 blue", False), ("M 1.0 2.0 3.0 red", False)],
)  # fmt: skip
def test_pictures_may_differ_by_rounding_alone(other, same):
    assert fragments.same_picture("M 1.0 2.0 red", other) is same


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_of_a_picture_has_contrast_on_white_and_on_black():
    # WCAG asks for 4.5 for text; shades behind it are the other way round
    for light, dark in pictures.ON_DARK.items():
        if contrast(light, "#ffffff") > 4.5:
            assert contrast(dark, "#131416") > 4.5
        else:
            assert contrast(dark, "#131416") < 3


PICTURES = sorted([*(ROOT / "docs/images").glob("*.svg"), ROOT / "docs/results/accuracy.svg"])


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_a_picture_has_no_background_and_no_dark_text_that_stays_dark(path):
    svg = path.read_text()
    assert "prefers-color-scheme: dark" in svg
    head = svg[: svg.index('id="matplotlib.axis')] if "matplotlib.axis" in svg else ""
    assert 'style="fill: #ffffff"' not in head  # figure and axes are see-through
    drawn = set(re.findall(r'style="[^"]*?(?:fill|stroke): (#[0-9a-f]{6})', svg))
    stays = {colour for colour in drawn - set(pictures.ON_DARK) if luminance(colour) < 0.03}
    assert stays <= {"#332288", "#882255"}  # two of the ten classes


# What is written there


@pytest.fixture(scope="module")
def made():
    return fragments.texts()


@pytest.fixture(scope="module")
def standard():
    return fragments.read("reproduction/standard/results")


def rows(text):
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [re.split(r" *(?<!\\)\| ?", line)[1:-1] for line in lines[:1] + lines[2:]]


def test_the_fourteen_claims_come_with_number_verdict_and_evidence(made, standard):
    _, *found = rows(made["claims"])
    assert [row[0] for row in found] == [f"C{n}" for n in range(1, 15)]
    for row, told in zip(found, standard["headlines"], strict=True):
        early = " (preliminary)" if told["preliminary"] else ""
        assert row[4] == f"**{told['verdict']}{early}**"


def test_the_story_has_ten_sentences_with_the_verdicts_that_it_rests_on(made, standard):
    assert story(standard["headlines"]) == standard["story"]
    assert made["story"].strip().split("\n") == [
        f"{n}. {s}" for n, s in enumerate(standard["story"], 1)
    ]
    assert len(standard["story"]) == 10
    other = [dict(row, verdict="turned", preliminary=False) for row in standard["headlines"]]
    assert sum(said.count("turned") for said in story(other)) == 12


def test_every_table_and_figure_has_a_section_with_its_claims_and_pictures(made, standard):
    shown = [q for q in standard["questions"] if q["name"] not in fragments.APART]
    headings = re.findall(r"^### (.*)$", made["exhibits"], re.MULTILINE)
    assert headings == [q["title"] for q in shown]
    assert len(rows(made["verdicts"])) == len(shown) + 1
    text = made["exhibits"] + made["budget"]
    for picture in re.findall(r"\]\((results/\S+?)\)", text):
        assert (ROOT / "docs" / picture).is_file(), picture
    claims = [claim for question in standard["questions"] for claim in question["claims"]]
    assert all(fragments.cell(claim["text"]) in text for claim in claims)


def test_no_verdict_rests_on_one_seed_and_few_are_preliminary(standard):
    claims = [claim for question in standard["questions"] for claim in question["claims"]]
    judged = [c for c in claims if c["seeds"] is not None and c["verdict"] != "no verdict"]
    assert judged
    assert all(claim["seeds"] > 1 for claim in judged)
    assert all(claim["preliminary"] is (claim["seeds"] < 5) for claim in judged)


def test_unfinished_runs_are_listed(made, standard):
    assert all(run["run"] in made["runs_behind_it"] for run in standard["missing"])


def test_cells_cannot_break_the_table():
    assert fragments.cell("a | b <c>\n d") == "a \\| b \\<c> d"


@pytest.mark.parametrize("text", ["", "{", '{"questions": []}', '{"questions": 1, "headlines": 2}'])
def test_results_that_cannot_be_used_are_refused(text, tmp_path, monkeypatch):
    monkeypatch.setattr(fragments, "RESULTS", tmp_path)
    path = tmp_path / "reproduction/standard/results.json"
    with pytest.raises(fragments.StaleError, match="cannot be used"):
        fragments.read("reproduction/standard/results")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(fragments.StaleError):
        fragments.texts()


# More rounds, against plain loops over the files of the archive

CELLS = ROOT / "results/cells"


def accuracies(channel, alpha, method, width):
    """The archived curves of a setting of table III in percent, by seed."""
    found = []
    for cell in grid_arm(channel, alpha, method).cells(scale("standard")):
        raw = lzma.decompress((CELLS / cell.name / "metrics.jsonl.xz").read_bytes())
        lines = [json.loads(line) for line in raw.splitlines()]
        found.append([100 * line["accuracy"][width] for line in lines])
    return found


def test_runs_with_further_rounds_are_shown_as_they_go_on():
    table = growth.further_rounds(CELLS)
    (row,) = [row for row in table.rows if row[0] == "SlimFL-1.0x, poor, α = 1"]
    curve = accuracies("poor", 1.0, "slimfl", "1.0x")[0]
    assert len(curve) > 100
    for end in (40, 100):
        mean = sum(curve[end - 10 : end]) / 10
        assert row[table.headings.index(f"up to {end}")] == f"{mean:.1f}"
    assert row[-1] == "84 ± 1.4"
    assert row[table.headings.index("`standard` reads")] == "80"


def test_leads_are_means_over_thirds_and_seeds():
    ours, theirs = (accuracies("poor", 10.0, m, "1.0x") for m in ("slimfl", "vanilla-1.0x"))
    # rounds 54 to 80
    last = [(sum(a[53:80]) - sum(b[53:80])) / 27 for a, b in zip(ours, theirs, strict=True)]
    mean = sum(last) / 3
    deviation = (sum((each - mean) ** 2 for each in last) / 2) ** 0.5
    half = t.ppf(0.975, 2) * deviation / 3**0.5
    found = growth.leads_by_thirds(CELLS).rows
    (row,) = [row for row in found if row[:2] == ["poor, α = 10", "1.0x"]]
    assert row[4:] == [f"{mean:+.1f} ± {half:.1f}", "3", "+5"]  # table III: 87 and 82


def test_an_archive_without_runs_says_so(tmp_path):
    assert growth.further_rounds(tmp_path).rows == []
    assert growth.leads_by_thirds(tmp_path).rows[0][2:] == ["not run"] * 3 + ["0", "+9"]
