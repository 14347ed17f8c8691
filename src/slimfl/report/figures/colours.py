"""Colours and dashes for all figures: colour is the method, dash is the width.

Methods have the colours of Okabe and Ito, which are distinct under every kind of colour blindness
(https://jfly.uni-koeln.de/color/); classes, of which there are more, those of Paul Tol's `muted`.
"""

from collections.abc import Iterable, Sequence

BLUE, ORANGE, GREEN, VERMILLION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, BLACK, GREY = "#CC79A7", "#56B4E9", "#000000", "#8C8C8C"

#: For methods, in turn. Blue is reserved for SlimFL.
METHODS = (ORANGE, VERMILLION, GREEN, PURPLE, SKY, GREY)

#: For the classes of a dataset, in turn.
CLASSES = ("#332288", "#88CCEE", "#44AA99", "#117733", "#999933",
           "#DDCC77", "#CC6677", "#882255", "#AA4499", "#BBBBBB")  # fmt: skip

#: Background of plots: `--card` of page.css on a light and on a dark screen.
LIGHT_CARD, DARK_CARD = "#FFFFFF", "#1C2126"
#: Minimum contrast with the card. WCAG 2 requires 3 for graphics; a thin line on dark needs more.
LIGHT_CONTRAST, DARK_CONTRAST = 3.0, 4.5

#: Outcomes of a device in a round, after the S segments.
NOT_ASKED, NO_ANSWER, REFUSED = "#D9D9D9", "#9A9A9A", PURPLE


def by_name(names: Iterable[str]) -> dict[str, str]:
    """A colour for every name of a group; the first SlimFL is blue.

    >>> by_name(["Vanilla FL-0.5x", "SlimFL"])
    {'SlimFL': '#0072B2', 'Vanilla FL-0.5x': '#E69F00'}
    """
    distinct = list(dict.fromkeys(names))
    slim = next((name for name in distinct if name.startswith("SlimFL")), None)
    rest = [name for name in distinct if name != slim]
    colours = {} if slim is None else {slim: BLUE}
    return colours | {name: METHODS[i % len(METHODS)] for i, name in enumerate(rest)}


def arrivals(segments: int) -> list[str]:
    """Nothing, segment 1, segments 1-2, ..., not asked, no answer, refused."""
    shades = [_between(SKY, BLUE, i / max(1, segments - 1)) for i in range(segments)]
    return [VERMILLION, *(shades if segments > 1 else [BLUE]), NOT_ASKED, NO_ANSWER, REFUSED]


def delivery(share: float) -> str:
    """From vermillion (never arrives) to blue (always arrives); grey if unknown.

    >>> delivery(0.0), delivery(1.0), delivery(float("nan"))
    ('#D55E00', '#0072B2', '#D9D9D9')
    """
    if share != share:
        return NOT_ASKED
    middle = "#F0E6D2"  # light, so that both ends stand out from it
    if share < 0.5:
        return _between(VERMILLION, middle, 2 * share)
    return _between(middle, BLUE, 2 * share - 1)


def dashes(widths: Sequence[str], styles: Sequence[str]) -> dict[str, str]:
    """A style for every width, the first for the widest."""
    return {width: styles[i % len(styles)] for i, width in enumerate(reversed(widths))}


def on_screen(colour: str) -> list[str]:
    """The colour on a light and on a dark screen: mixed with black or white until it is visible.

    >>> on_screen(GREEN), on_screen(BLACK)
    (['#009E73', '#009E73'], ['#000000', '#8A8A8A'])
    """
    if colour == NOT_ASKED:
        return [NOT_ASKED, "#3A434B"]  # inconspicuous on both, as nothing happened there
    return [
        _visible(colour, BLACK, LIGHT_CARD, LIGHT_CONTRAST),
        _visible(colour, "#FFFFFF", DARK_CARD, DARK_CONTRAST),
    ]


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2, from 1 to 21."""
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _visible(colour: str, towards: str, card: str, least: float) -> str:
    mixed = (_between(colour, towards, step / 50) for step in range(51))
    return next(shade for shade in mixed if contrast(shade, card) >= least)


def _luminance(colour: str) -> float:
    linear = (
        s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4
        for s in (value / 255 for value in _rgb(colour))
    )
    return sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _between(start: str, end: str, share: float) -> str:
    mixed = (round(a + (b - a) * share) for a, b in zip(_rgb(start), _rgb(end), strict=True))
    return "#" + "".join(f"{value:02X}" for value in mixed)
