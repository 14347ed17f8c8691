"""Marked places of the pages, and pictures for light and dark pages."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "docs/_ext")]

import fragments  # noqa: E402
import two_modes  # noqa: E402

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
    for light, dark in two_modes.ON_DARK.items():
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
    stays = {colour for colour in drawn - set(two_modes.ON_DARK) if luminance(colour) < 0.03}
    assert stays <= {"#332288", "#882255"}  # two of the ten classes
