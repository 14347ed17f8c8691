"""What the pages show of the code and of committed results, written in place.

A page marks the place: everything between `<!-- fragment: NAME -->` and `<!-- end of fragment -->`
is replaced by the macro of that name in `fragments.md.j2`. So the pages read the same on a Git
host, in an editor and when they are built. Pictures go to docs/images.

    python docs/fragments.py           write what has changed
    python docs/fragments.py --check   write nothing; status 1 if something is out of date
"""

from __future__ import annotations

import html
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from math import isclose
from pathlib import Path
from typing import Any

from click import Context
from jinja2 import Environment, FileSystemLoader, StrictUndefined, UndefinedError
from typer.cli import get_docs_for_click
from typer.main import get_command

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS / "_ext"), str(DOCS.parent)]

import matplotlib.pyplot as plt  # noqa: E402
import pictures  # noqa: E402

from benchmarks.table import tables  # noqa: E402
from lab import growth, judge  # noqa: E402
from lab import plan as plans  # noqa: E402
from lab.pictures import figures, save  # noqa: E402
from lab.scale import names, scale  # noqa: E402
from slimfl.cli.app import app  # noqa: E402
from slimfl.experiment.keys import TOP, reference  # noqa: E402
from slimfl.results.statistics import EQUAL_WITHIN  # noqa: E402

IMAGES, RESULTS = DOCS / "images", DOCS / "results"
TEMPLATE = DOCS / "fragments.md.j2"
PLACE = re.compile(
    r"(?P<begin><!-- fragment: (?P<name>.+?) -->\n).*?(?P<end><!-- end of fragment -->)", re.DOTALL
)
#: A program: `code PATH`, `code PATH from LINE` to leave out what comes before, or
#: `code PATH from LINE until LINE` to leave out what comes after, too.
CODE = re.compile(r"code (?P<path>\S+)(?: from (?P<start>.+?)(?: until (?P<end>.+))?)?")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
#: Questions of the reproduction with a section or a page of their own.
APART = ("budget", "choices", "vanilla")


class StaleError(Exception):
    """Pages and fragments do not belong together."""


def read(name: str) -> Any:
    """A committed result below docs/results."""
    try:
        return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StaleError(f"docs/results/{name}.json cannot be used: {error}") from error


# What the template is given


def documents() -> dict[str, Any]:
    """Committed results, and what the code says of itself."""
    standard = read("reproduction/standard/results")
    questions = {each["name"]: each for each in standard["questions"]}
    studies = sorted(path.parent.name for path in RESULTS.glob("studies/*/results.json"))
    archive = DOCS.parent / "results" / "cells"
    return {
        "standard": standard,
        "exhibit": questions.__getitem__,
        "papers": [each for name, each in questions.items() if name not in APART],
        "verdicts_known": list(judge.Verdict),
        "growth": lambda name: growth.table(name, archive).as_markdown(),
        "studies": {name: read(f"studies/{name}/results") for name in studies},
        "planned": planned(),
        "superposition": read("plans/superposition"),
        "scarce": read("plans/scarce-bandwidth"),
        "contrasts": lambda plan: {row["contrast"]: row for row in plan["contrasts"]},
        "first_run_document": read("first-run"),
        "convex": read("convex"),
        "gains": pictures.gains_table(),
        "recipes": read("recipe"),
        "benchmark": read("bench"),
        "method_benchmark": read("bench-methods"),
        "tables_of": tables,
        "sections": reference(),
        "top": TOP,
        "commands_text": commands(),
        "scales_known": [scale(name) for name in names("reproduce")],
    }


def planned() -> list[dict[str, Any]]:
    """Every plan with its runs and what they say, answered ones first."""
    found = []
    for plan in map(plans.load, plans.names()):
        path = f"plans/{plan.name}"
        document = read(path) if (RESULTS / f"{path}.json").is_file() else {"finished": 0}
        found.append({"name": plan.name, "plan": plan.plan, "runs": plan.runs,
                      "document": document})  # fmt: skip
    return sorted(found, key=lambda each: each["document"]["finished"] < len(each["runs"]))


def commands() -> str:
    """Every command with its arguments and options, as typer writes them."""
    program = get_command(app)
    text = get_docs_for_click(obj=program, ctx=Context(program), name="slimfl", indent=1)
    text = html.unescape(text[text.index("### ") :])
    text = re.sub(r"^\* `--help`.*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"  \[default: \((.*)\)\]$", r"  [default: \1]", text, flags=re.MULTILINE)
    return re.sub(r"^###+ ", "## ", text, flags=re.MULTILINE).replace("<", "\\<")


# What the template can do with a value


def cell(text: object) -> str:
    """One line without what a table or HTML would read."""
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "\\<")


def digits(value: float) -> str:
    """Two digits, or a whole number."""
    return f"{value:.2g}" if value < 99 else f"{value:,.0f}"


def share(value: float) -> str:
    """A share of a bound; bold where the bound is broken."""
    return f"**{digits(value)}**" if value > 1 else digits(value)


def equal_in(row: dict[str, Any], arms: list[dict[str, Any]]) -> str:
    """In which budgets the two arms of a contrast agreed, as measured."""
    first, second = (
        next(
            each["spent"]
            for each in arms
            if (each["arm"], each.get("setting")) == (row[side], row.get("setting"))
        )
        for side in ("of", "over")
    )
    budgets = ("airtime", "transmit energy", "computing")
    return ", ".join(b for b in budgets if isclose(first[b], second[b], rel_tol=EQUAL_WITHIN))


def texts(given: dict[str, Any] | None = None) -> dict[str, str]:
    """Every fragment by its name, but for programs; from other documents if some are given."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATE.parent), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.tests["match"] = str.startswith
    environment.filters |= {
        "fmt": format,
        "cell": cell,
        "share": share,
        "equal_in": equal_in,
        "percent": lambda value: f"{digits(100 * value)}%",
        "words": lambda text: " ".join(text.split()),
        "bars": lambda text: text.replace("|", "\\|").replace("\n", " "),
        "as_json": json.dumps,
        "verdict": lambda c: f"{c['verdict']}{' (preliminary)' if c['preliminary'] else ''}",
        "counted": judge.counted,
        "values": lambda row: list(row.values()),
        "nearest": lambda places, to: min(range(len(places)), key=lambda i: abs(places[i] - to)),
    }
    try:
        made = environment.get_template(TEMPLATE.name).make_module(given or documents())
        return {name: macro() for name, macro in vars(made).items() if callable(macro)}
    except (UndefinedError, KeyError, TypeError) as error:
        raise StaleError(f"a committed result does not fit {TEMPLATE.name}: {error}") from error


def draw(folder: Path) -> None:
    """All pictures."""
    with plt.rc_context(pictures.STYLE):
        for name, picture in pictures.PICTURES.items():
            save(picture(), folder / f"{name}.svg")
    plt.close("all")
    for name, figure in figures(read):
        save(figure, folder / f"{name}.svg")


# Pages


def pages() -> list[Path]:
    """The README and every page that is written by hand."""
    written = (p for p in DOCS.rglob("*.md") if "results" not in p.parts and "rooms" not in p.parts)
    return [DOCS.parent / "README.md", *sorted(p for p in written if "_build" not in p.parts)]


def program(page: Path, path: str, start: str | None, end: str | None) -> str:
    """A program, or a part of it, as a block of code."""
    code = (page.parent / path).read_text(encoding="utf-8")
    if start is not None:
        code = code[code.index(start) :]
    if end is not None:
        code = code[: code.index(end)]
    language = "toml" if path.endswith(".toml") else "python"
    return f"```{language}\n{code.rstrip()}\n```"


def macro_of(name: str) -> str:
    """The macro behind a fragment's name."""
    return re.sub(r"\W", "_", name)


def filled(page: Path, text: str, fragments: dict[str, str]) -> str:
    """The page with every marked place written anew."""

    def write(place: re.Match[str]) -> str:
        name = place["name"]
        if code := CODE.fullmatch(name):
            made = program(page, code["path"], code["start"], code["end"])
        elif macro_of(name) in fragments:
            made = fragments[macro_of(name)].strip()
        else:
            raise StaleError(f"{page}: there is no fragment {name!r}")
        return f"{place['begin']}\n{made}\n\n{place['end']}"

    return PLACE.sub(write, text)


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
    used = {macro_of(place["name"]) for text in written.values() for place in PLACE.finditer(text)}
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
    try:
        found = list(stale())
    except StaleError as error:
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
