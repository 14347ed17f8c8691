"""`python -m lab`: run planned questions and follow their progress."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from lab.plan import NamedPlan, load, names
from slimfl.errors import RequestError, RunError
from slimfl.sweeps import is_complete, run_jobs

app = typer.Typer(help=__doc__, no_args_is_help=True)
CACHE = Path("lab/cells")
Names = Annotated[list[str] | None, typer.Argument(help="Plans; all when absent.")]
Cache = Annotated[Path, typer.Option(help="Folder for the runs.")]


@app.command()
def run(
    plans: Names = None,
    cache: Cache = CACHE,
    workers: Annotated[int | None, typer.Option(help="Runs at a time.", min=1)] = None,
) -> None:
    """Run what is missing of some plans, in the order given."""
    for name in plans or names():
        planned = load(name)
        commit = planned.committed()
        missing = [r for r in planned.runs if not is_complete(r.cell.job(cache))]
        for each in missing:
            _stamp(planned, commit, each.cell.folder(cache))
        run_jobs((each.cell.job(cache) for each in missing), "local", workers=workers)


@app.command()
def status(plans: Names = None, cache: Cache = CACHE) -> None:
    """Say how many runs are finished."""
    for name in plans or names():
        runs = load(name).runs
        done = sum(is_complete(each.cell.job(cache)) for each in runs)
        typer.echo(f"{name}: {done} of {len(runs)} runs are finished")


def _stamp(planned: NamedPlan, commit: str, folder: Path) -> None:
    """Record beside a run, before it begins, which plan asked for it."""
    stamp = folder.parent / "stamps" / f"{folder.name}.json"
    if not stamp.exists() and not folder.exists():
        stamp.parent.mkdir(parents=True, exist_ok=True)
        words = {"plan": planned.name, "sha256": planned.digest, "commit": commit}
        stamp.write_text(json.dumps(words) + "\n")


def main() -> None:
    """The entry point."""
    try:
        app(standalone_mode=False)
    except (RequestError, RunError) as error:
        typer.echo(f"lab: {error}", err=True)
        raise SystemExit(2 if isinstance(error, RequestError) else 1) from None


if __name__ == "__main__":
    main()
