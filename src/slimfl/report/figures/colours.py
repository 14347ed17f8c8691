"""Colours and dashes, the same in every figure: colour says the method, the dash says the width.

Methods take the colours of Okabe and Ito, which stay apart under every kind of colour blindness
(https://jfly.uni-koeln.de/color/); classes, of which there are more, those of Paul Tol's `muted`.
"""

from collections.abc import Iterable, Sequence

BLUE, ORANGE, GREEN, VERMILLION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, BLACK, GREY = "#CC79A7", "#56B4E9", "#000000", "#8C8C8C"

#: For what is compared, in turn. Blue is kept for SlimFL.
METHODS = (ORANGE, VERMILLION, GREEN, PURPLE, SKY, GREY)

#: For the classes of a dataset, in turn.
CLASSES = ("#332288", "#88CCEE", "#44AA99", "#117733", "#999933",
           "#DDCC77", "#CC6677", "#882255", "#AA4499", "#BBBBBB")  # fmt: skip

#: What may become of a device in a round, after the S segments.
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
    """From vermillion for what never arrives to blue for what always does; grey if unknown.

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


def faint(colour: str, opacity: float) -> str:
    """A see-through colour in CSS."""
    red, green, blue = _rgb(colour)
    return f"rgba({red},{green},{blue},{opacity})"


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _between(start: str, end: str, share: float) -> str:
    mixed = (round(a + (b - a) * share) for a, b in zip(_rgb(start), _rgb(end), strict=True))
    return "#" + "".join(f"{value:02X}" for value in mixed)
