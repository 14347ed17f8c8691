"""What the pages show of the code and of committed results, written in place.

A page marks the place: everything between `<!-- fragment: NAME -->` and `<!-- end of fragment -->`
is replaced. So the pages read the same on a Git host, in an editor and when they are built.
Pictures go to docs/images.

    python docs/fragments.py           write what has changed
    python docs/fragments.py --check   write nothing; status 1 if something is out of date
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS / "_ext"), str(DOCS.parent)]

import commands  # noqa: E402
import configuration  # noqa: E402
import convergence  # noqa: E402
import gains  # noqa: E402
import growth  # noqa: E402
import headline  # noqa: E402
import measured  # noqa: E402
import pictures  # noqa: E402
import plans  # noqa: E402
import scales  # noqa: E402
import study_pages  # noqa: E402
import verdicts  # noqa: E402

IMAGES = DOCS / "images"
PLACE = re.compile(
    r"(?P<begin><!-- fragment: (?P<name>.+?) -->\n).*?(?P<end><!-- end of fragment -->)", re.DOTALL
)
#: A program: `code PATH`, or `code PATH from LINE` to leave out what comes before.
CODE = re.compile(r"code (?P<path>\S+)(?: from (?P<start>.+))?")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


class StaleError(Exception):
    """Pages and fragments do not belong together."""


def pages() -> list[Path]:
    """The README and every page that is written by hand."""
    written = (p for p in DOCS.rglob("*.md") if "results" not in p.parts and "rooms" not in p.parts)
    return [DOCS.parent / "README.md", *sorted(p for p in written if "_build" not in p.parts)]


def texts() -> dict[str, str]:
    """Every fragment by its name, but for programs."""
    return {
        "configuration": configuration.text(),
        "commands": commands.text(),
        "scales": scales.text(),
        **measured.texts(),
        **convergence.texts(),
        **gains.texts(),
        **verdicts.texts(DOCS / "results" / "reproduction"),
        **growth.texts(DOCS.parent / "results" / "cells"),
        **headline.texts(),
        **plans.texts(DOCS / "results" / "plans"),
        **study_pages.texts(DOCS / "results" / "studies"),
    }


def program(page: Path, path: str, start: str | None) -> str:
    """A program as a block of code."""
    code = (page.parent / path).read_text(encoding="utf-8")
    if start is not None:
        code = code[code.index(start) :]
    language = "toml" if path.endswith(".toml") else "python"
    return f"```{language}\n{code.rstrip()}\n```"


def filled(page: Path, text: str, fragments: dict[str, str]) -> str:
    """The page with every marked place written anew."""

    def write(place: re.Match[str]) -> str:
        name = place["name"]
        if code := CODE.fullmatch(name):
            made = program(page, code["path"], code["start"])
        elif name in fragments:
            made = fragments[name].strip()
        else:
            raise StaleError(f"{page}: there is no fragment {name!r}")
        return f"{place['begin']}\n{made}\n\n{place['end']}"

    return PLACE.sub(write, text)


def draw(folder: Path) -> None:
    """All pictures."""
    pictures.draw(folder)
    measured.draw(folder)
    convergence.draw(folder)
    gains.draw(folder)
    headline.draw(folder)


def same_picture(one: str, other: str) -> bool:
    """Whether two SVGs differ by no more than the rounding of another processor."""
    if NUMBER.split(one) != NUMBER.split(other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(a == b or abs(float(a) - float(b)) < 0.01 for a, b in pairs)


def stale() -> Iterator[tuple[Path, Callable[[], object]]]:
    """Everything that is out of date, and what writes it anew."""
    fragments = texts()
    written = {page: page.read_text(encoding="utf-8") for page in pages()}
    used = {place["name"] for text in written.values() for place in PLACE.finditer(text)}
    if unused := sorted(set(fragments) - used):
        raise StaleError(f"no page shows the fragments {', '.join(unused)}")
    for page, text in written.items():
        new = filled(page, text, fragments)
        if new != text:
            yield page, lambda page=page, new=new: page.write_text(new, encoding="utf-8")
    with tempfile.TemporaryDirectory() as temporary:
        draw(Path(temporary))
        drawn = {path.name: path.read_text(encoding="utf-8") for path in Path(temporary).iterdir()}
    for name, svg in sorted(drawn.items()):
        path = IMAGES / name
        if not path.exists() or not same_picture(path.read_text(encoding="utf-8"), svg):
            yield path, lambda path=path, svg=svg: path.write_text(svg, encoding="utf-8")
    for path in sorted(IMAGES.glob("*.svg")):
        if path.name not in drawn:
            yield path, path.unlink


def main(check: bool) -> int:
    """Write or check everything; the status to end with."""
    IMAGES.mkdir(exist_ok=True)
    try:
        found = list(stale())
    except (StaleError, verdicts.ResultsError) as error:
        print(f"docs/fragments.py: {error}", file=sys.stderr)
        return 1
    for path, write in found:
        print(path.relative_to(DOCS.parent), file=sys.stderr)
        if not check:
            write()
    if found and check:
        print("out of date: run `.venv/bin/python docs/fragments.py`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
