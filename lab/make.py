"""From questions to a folder: run what is missing, answer, write.

OUT/results.json        everything below as data, with commands, versions and seeds
OUT/tables/NAME.csv     every table, and the same as NAME.md
OUT/tables/claims.csv   every claim with its verdict, seeds and interval
OUT/figures/NAME.png    every figure, and the same as NAME.pdf
OUT/index.html          all of it on one page that loads nothing
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from lab import made_with
from lab.cell import Cell, gather, seed_by_seed
from lab.headlines import headlines, story, verdict_words
from lab.judge import RULE, counted
from lab.question import Answer, Question, Table
from slimfl.files import atomic_write
from slimfl.report.figures.drawing import save
from slimfl.runs.sweeps import Watcher, is_complete

#: The scale whose runs the ten sentences are about.
STORY_OF = "standard"


@dataclass(frozen=True)
class Made:
    """Questions with their answers, and which runs they still lack."""

    questions: Sequence[Question]
    scale: Any
    answers: Mapping[str, Answer]
    cells: Sequence[Cell]
    missing: Sequence[dict[str, Any]]
    """Every run that lacks rounds: its name, its rounds, and the questions that need it."""
    processor_s: float
    """What the runs took, training and testing, on one core each."""

    @property
    def lacking(self) -> str:
        """What is unfinished, in a sentence; empty if all runs are finished."""
        if not self.missing:
            return ""
        done = len(self.cells) - len(self.missing)
        return f"{done} of {len(self.cells)} runs are finished."


def cells_of(questions: Sequence[Question], scale: Any) -> list[Cell]:
    """Every run once: seed 0 of all settings first, so that early results cover all settings."""
    return seed_by_seed(cell for question in questions for cell in question.cells(scale))


def make(
    questions: Sequence[Question],
    scale: Any,
    cache: Path,
    archive: Path | None = None,
    *,
    on: str = "local",
    workers: int | None = None,
    run: bool = True,
    watch: Watcher | None = None,
) -> Made:
    """Answer questions; without `run`, from existing runs, finished or not.

    Args:
        questions: What to answer.
        scale: How much work, of the kind that the questions take.
        cache: The folder of run folders.
        archive: The folder of packed runs, used where it has more rounds.
        on: Where to run.
        workers: Number of parallel runs; one per core when absent.
        run: Whether to run what is missing.
        watch: Follows the runs.
    """
    cells = cells_of(questions, scale)
    runs = gather(cells, cache, archive, on=on, workers=workers, run=run, watch=watch)
    spent = sum(
        line.seconds.training + line.seconds.evaluation
        for record in runs.values()
        for line in record.lines
    )
    answers = {each.name: each.answer(scale, runs) for each in questions}
    return Made(questions, scale, answers, cells, _missing(questions, scale, cells, cache), spent)


def _missing(
    questions: Sequence[Question], scale: Any, cells: Sequence[Cell], cache: Path
) -> list[dict[str, Any]]:
    needs = {question.name: set(question.cells(scale)) for question in questions}
    return [
        {
            "run": job.name,
            "rounds_done": min(job.rounds_done, job.rounds),
            "rounds": job.rounds,
            "needed_for": [name for name, some in needs.items() if cell in some],
        }
        for cell in cells
        if not is_complete(job := cell.job(cache))
    ]


def write(made: Made, out: Path, command: str) -> dict[str, Any]:
    """Write tables, figures, data and page; returns the data."""
    written = []
    for question in made.questions:
        answer = made.answers[question.name]
        for table in answer.tables:
            _write_table(table, out)
        for picture in answer.pictures:
            for kind in ("png", "pdf"):
                save(picture.figure, out / "figures" / f"{picture.name}.{kind}")
        written.append(as_json(question, answer))
    rows = headlines(made.answers) if "budget" in made.answers else []
    answered = {
        "scale": made.scale.name,
        "command": command,
        "what_is_run": made.scale.words,
        "unfinished": made.lacking,
        "runs": len(made.cells),
        "missing": list(made.missing),
        "processor_s": round(made.processor_s),
        "versions": made_with.versions(),
        "engine": f"{made_with.engine()}, weights drawn by {made_with.weights()}",
        "rule": RULE,
        "headlines": rows,
        "story": story(rows) if rows and made.scale.name == STORY_OF else [],
        "questions": written,
    }
    if any(each["claims"] for each in written):
        _write_table(claims_table(written), out)
    text = json.dumps(answered, indent=1, ensure_ascii=False) + "\n"
    document: dict[str, Any] = json.loads(text)  # as a reader has it, whose keys are text
    _text(out / "results.json", text)
    _text(out / "index.html", page(document, out))
    return document


def as_json(question: Question, answer: Answer) -> dict[str, Any]:
    """One question as plain values."""
    return {
        "name": question.name,
        "title": question.title,
        "asks": question.asks,
        "verdicts": counted(str(claim.verdict) for claim in answer.claims),
        "claims": [claim.as_json() for claim in answer.claims],
        "sentences": answer.sentences,
        "tables": [
            {"name": t.name, "title": t.title, "headings": t.headings, "rows": t.rows}
            for t in answer.tables
        ],
        "pictures": [
            {"file": f"figures/{p.name}.png", "caption": p.caption} for p in answer.pictures
        ],
        "data": answer.data,
    }


def claims_table(questions: Sequence[Mapping[str, Any]]) -> Table:
    """Every claim with its verdict and what it rests on."""
    headings = ["table or figure", "claim", "the paper", "ours", "verdict", "seeds", "reason"]
    rows = [
        [
            question["title"].partition(":")[0],
            claim["text"],
            claim["paper"],
            claim["ours"],
            verdict_words(claim),
            "" if claim["seeds"] is None else str(claim["seeds"]),
            claim["reason"],
        ]
        for question in questions
        for claim in question["claims"]
    ]
    return Table("claims", "Every claim", headings, rows)


def page(document: Mapping[str, Any], out: Path) -> str:
    """The whole page as text; figures are read from the folder `out`."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    environment.filters["said"] = _said
    environment.filters["embedded"] = lambda file: _embedded(out / file)
    template = environment.get_template("page.html.j2")
    claims = claims_table(document["questions"])
    return template.render(**document, all_claims=claims, verdict_words=verdict_words)


def _said(text: str) -> Any:
    """Escaped, with backticks as code, and without Markdown's links and line breaks in `1 ± 1`."""
    from markupsafe import Markup

    plain = re.sub(r"\[([^\]]+)\]\([^)\s]+\)", r"\1", text)
    together = re.sub(r" (±|(?<=α )=) ", r"&nbsp;\1&nbsp;", escape(plain))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", together))


def _embedded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode("ascii")


def _write_table(table: Table, out: Path) -> None:
    _text(out / "tables" / f"{table.name}.csv", table.as_csv())
    _text(out / "tables" / f"{table.name}.md", table.as_markdown())


def _text(path: Path, text: str) -> None:
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


# Against an earlier answer


def differences(ours: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """The differences of a document from an earlier one of the same scale, one line each.

    With the same engine and versions, every number and word must be the same. Otherwise rounding
    differs and with it every run, so a contrast may differ by both intervals.
    """
    exact = same_engine(ours, before)
    known = {question["name"]: question for question in before["questions"]}
    found = []
    for question in ours["questions"]:
        name = question["name"]
        if name not in known:
            found.append(f"{name}: not there before")
        elif exact and question != known[name]:
            found += _rows(question, known[name]) or [f"{name}: sentences or claims differ"]
        elif not exact:
            found += _contrasts(question, known[name])
    return found


def same_engine(ours: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """True if both come from the same arithmetic, so that they must be bit-identical."""
    return all(ours[key] == before[key] for key in ("scale", "engine", "versions"))


def _rows(question: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    return [
        f"{question['name']}: {' | '.join(new)} (before: {' | '.join(old)})"
        for ours, theirs in zip(question["tables"], before["tables"], strict=False)
        for new, old in zip(ours["rows"], theirs["rows"], strict=False)
        if new != old
    ]


def _contrasts(question: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    found = []
    for one, other in zip(question["claims"], before["claims"], strict=False):
        if None not in (one["low"], other["low"]):
            apart = one["low"] > other["high"] or other["low"] > one["high"]
            if apart:
                found.append(
                    f"{question['name']}: {one['text']}: {one['ours']} (before: {other['ours']})"
                )
        elif one["mean"] is None and (one["ours"], one["verdict"]) != (
            other["ours"],
            other["verdict"],
        ):
            found.append(f"{question['name']}: {one['text']}: {one['ours']} ({other['ours']})")
    return found
