"""Everything on the page is visible on a light and on a dark screen: WCAG 2, level AA."""

import re
from importlib import resources
from itertools import combinations

import pytest

from slimfl.report.figures import colours

TEXT, GRAPHIC = 4.5, 3.0  # WCAG 2: 1.4.3 for text, 1.4.11 for what carries meaning
CSS = resources.files("slimfl.report.pages").joinpath("page.css").read_text(encoding="utf-8")


def palette(dark: bool) -> dict[str, str]:
    """The colours that page.css defines for one kind of screen."""
    blocks = re.findall(r":root \{(.*?)\}", CSS, re.S)
    assert len(blocks) == 2
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", blocks[dark]))


def luminance(colour: str) -> float:
    """As https://www.w3.org/TR/WCAG22/#dfn-relative-luminance says, written out."""
    total = 0.0
    for start, weight in ((1, 0.2126), (3, 0.7152), (5, 0.0722)):
        value = int(colour[start : start + 2], 16) / 255
        linear = value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        total += weight * linear
    return total


def ratio(one: str, other: str) -> float:
    brighter, darker = max(luminance(one), luminance(other)), min(luminance(one), luminance(other))
    return (brighter + 0.05) / (darker + 0.05)


def test_the_ratio_is_that_of_the_standard():
    assert ratio("#000000", "#ffffff") == pytest.approx(21)
    assert ratio("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert colours.contrast("#123456", "#fedcba") == pytest.approx(ratio("#123456", "#fedcba"))


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read(dark):
    defined = palette(dark)
    for text in ("ink", "soft", "accent"):
        for ground in ("page", "card", "code"):
            assert ratio(defined[text], defined[ground]) >= TEXT, (text, ground)
    # a chosen axis is written in the card's colour on the accent
    assert ratio(defined["card"], defined["accent"]) >= TEXT


@pytest.mark.parametrize("dark", [False, True])
def test_what_is_drawn_can_be_seen(dark):
    card = palette(dark)["card"]
    assert card.upper() == (colours.LIGHT_CARD, colours.DARK_CARD)[dark]
    drawn = [*colours.METHODS, colours.BLUE, *colours.CLASSES]
    drawn += [shade for segments in (1, 2, 4, 8) for shade in colours.arrivals(segments)]
    for colour in set(drawn) - {colours.NOT_ASKED}:
        assert ratio(colours.on_screen(colour)[dark], card) >= GRAPHIC, colour


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("shades", [colours.METHODS, colours.CLASSES])
def test_colours_stay_apart(shades, dark):
    shown = [colours.on_screen(shade)[dark] for shade in shades]
    for one, other in combinations(shown, 2):
        steps = [abs(int(one[i : i + 2], 16) - int(other[i : i + 2], 16)) for i in (1, 3, 5)]
        assert max(steps) >= 24, (one, other)
