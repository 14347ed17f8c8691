"""`python -m benchmarks`: engines and other frameworks side by side."""

import json as json_module
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.peer_environments import find_peers, peer_runner
from benchmarks.suite import benchmark, method_benchmark
from benchmarks.table import tables
from slimfl.cli.output import Json, aside, check_writable, show, show_json, table
from slimfl.errors import RequestError, RunError
from slimfl.files import atomic_write


def bench(
    repetitions: Annotated[
        int, typer.Option(help="Number of repetitions per engine.", min=2, max=1000)
    ] = 5,
    images: Annotated[
        int, typer.Option(help="Images per repetition.", min=64, max=10_000_000)
    ] = 3840,
    methods: Annotated[
        bool, typer.Option("--methods", help="Time only a round of each method.")
    ] = False,
    peers: Annotated[
        bool, typer.Option("--peers", help="Add other frameworks, each in its own environment.")
    ] = False,
    peers_dir: Annotated[
        Path, typer.Option(help="Folder with the runners of other frameworks.")
    ] = Path(__file__).parent / "peers",
    out: Annotated[
        Path | None,
        typer.Option(help="Also write the JSON document to this file.", show_default="nowhere"),
    ] = None,
    json: Json = False,
) -> None:
    """Time the engines on the same work, side by side.

    Repetitions are interleaved; compare ratios, not seconds.
    """
    if methods and peers:
        raise RequestError("--methods times no other frameworks; leave out --peers or --methods")
    found = find_peers(peers_dir) if peers else []
    if peers and not found:
        raise RequestError(f"{peers_dir} contains no runners; give another folder with --peers-dir")
    if out is not None:
        check_writable(out)  # before the work, not after it

    def tell(text: str) -> None:
        aside().print(text, highlight=False)

    if methods:
        document = method_benchmark(repetitions, images, tell)
    else:
        runners = {folder.name: partial(peer_runner, folder) for folder in found}
        document = benchmark(repetitions, images, runners, tell=tell)
    if out is not None:
        with atomic_write(out) as temporary:
            temporary.write_text(json_module.dumps(document, indent=1) + "\n")
    if json:
        show_json(document)
    else:
        show(*(table(rows, title) for title, rows in tables(document)))


def main() -> None:
    """The entry point."""
    try:
        typer.run(bench)
    except (RequestError, RunError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, RequestError) else 1)


if __name__ == "__main__":
    main()
