"""`python -m lab`: reproduce the paper, answer studies, run and judge planned questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from lab import archive
from lab.answer import answer as answered
from lab.answer import document
from lab.plan import NamedPlan, PlannedRun, load, names
from lab.reproduce_command import reproduce
from lab.study_command import study
from slimfl.cli.app import main
from slimfl.cli.plain_help import PlainGroup
from slimfl.runs.sweeps import run_jobs

app = typer.Typer(name="lab", help=__doc__, no_args_is_help=True, cls=PlainGroup)
plan = typer.Typer(help="Questions that are planned before their runs.", no_args_is_help=True)
app.add_typer(reproduce, name="reproduce")
app.add_typer(study, name="study")
app.add_typer(plan, name="plan")
CACHE = Path("lab/cells")
RESULTS = Path("docs/results/plans")
Names = Annotated[list[str] | None, typer.Argument(help="Plans; all when absent.")]
Cache = Annotated[Path, typer.Option(help="Folder for the runs.")]
Results = Annotated[Path, typer.Option(help="Folder for what the runs say.")]


@plan.command()
def run(
    plans: Names = None,
    cache: Cache = CACHE,
    workers: Annotated[int | None, typer.Option(help="Runs at a time.", min=1)] = None,
) -> None:
    """Run what is missing of some plans, in the order given."""
    for name in plans or names():
        planned = load(name)
        commit = planned.committed()
        archive.unpack(planned, cache)
        missing = [each for each in planned.runs if not archive.finished(each, cache)]
        for each in missing:
            _stamp(planned, commit, each, cache)
        run_jobs((each.cell.job(cache) for each in missing), "local", workers=workers)


@plan.command()
def status(plans: Names = None, cache: Cache = CACHE) -> None:
    """Say how many runs are finished."""
    for name in plans or names():
        planned = load(name)
        archive.unpack(planned, cache)
        done = sum(archive.finished(each, cache) for each in planned.runs)
        typer.echo(f"{name}: {done} of {len(planned.runs)} runs are finished")


@plan.command()
def pack(plans: Names = None, cache: Cache = CACHE) -> None:
    """Put the finished runs of some plans into the repository's archive."""
    for name in plans or names():
        count = archive.pack(load(name), cache)
        typer.echo(f"{name}: {count} runs in {archive.ARCHIVE / name}.tar.xz")


@plan.command()
def answer(plans: Names = None, cache: Cache = CACHE, results: Results = RESULTS) -> None:
    """Judge the finished runs of some plans and write what they say as JSON."""
    for name in plans or names():
        planned = load(name)
        archive.unpack(planned, cache)
        said = document(answered(planned, cache))
        path = results / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
        typer.echo(f"{name}: {said['finished']} of {said['planned']} runs, in {path}")


def _stamp(planned: NamedPlan, commit: str, run: PlannedRun, cache: Path) -> None:
    """Record beside a run, before it begins, which plan asked for it."""
    stamp = archive.stamp_of(run, cache)
    if not stamp.exists() and not run.cell.folder(cache).exists():
        stamp.parent.mkdir(parents=True, exist_ok=True)
        words = {"plan": planned.name, "sha256": planned.digest, "commit": commit}
        stamp.write_text(json.dumps(words) + "\n")


if __name__ == "__main__":
    main(app, "lab")
