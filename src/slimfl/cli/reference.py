"""`slimfl keys`: what an experiment's file and `--set` can say."""

import difflib
import json
from dataclasses import replace
from typing import Annotated

import typer

from slimfl.cli.output import Reply, show_json, table
from slimfl.cli.settings import command
from slimfl.errors import RequestError
from slimfl.experiment.keys import KeySection, reference, schema
from slimfl.experiment.short_names import meant


@command()
def keys(
    word: Annotated[
        str | None,
        typer.Argument(
            metavar="SECTION_OR_WORD",
            help="A section, such as radio, or a word in the key or its description.",
            show_default="all keys",
        ),
    ] = None,
    as_schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            help="Print the JSON schema of an experiment's file, which editors read: "
            "slimfl keys --schema > experiment.schema.json.",
        ),
    ] = False,
) -> Reply | None:
    """List the keys of an experiment with their values and defaults.

    A key is set in a TOML file or with --set KEY=VALUE; several values are one run each.
    """
    if as_schema:
        show_json(schema())
        return None
    entries, tables = [], []
    for section in _chosen(reference(), word):
        rows = []
        for key in section.keys:
            default = "absent" if key.default is None else json.dumps(key.default)
            # two columns, because a key that is wrapped cannot be copied
            told = f"{_plain(key.meaning)}\n{_plain(key.values)}; default: {default}"
            rows.append({"key": key.name, "meaning; values; default": told})
            entries.append({
                "key": key.name,
                "section": section.name,
                "default": key.default,
                "values": _plain(key.values),
                "meaning": _plain(key.meaning),
            })  # fmt: skip
        tables.append(table(rows, f"{section.name}: {_plain(section.meaning)}"))
    return Reply({"keys": entries}, tables)


def _plain(markdown: str) -> str:
    return " ".join(markdown.replace("`", "").split())


def _chosen(sections: list[KeySection], word: str | None) -> list[KeySection]:
    """The section of that name, or the keys in which the word occurs."""
    if word is None:
        return sections
    names, other = [section.name for section in sections], meant(word)
    if word in names:
        return [sections[names.index(word)]]
    found = []
    for section in sections:
        keys = tuple(
            key
            for key in section.keys
            if (word and word.lower() in f"{key.name} {key.meaning}".lower()) or key.name == other
        )
        if keys:
            found.append(replace(section, keys=keys))
    if not found:
        near = difflib.get_close_matches(word.lower().partition(".")[0], names, 1, 0.5)
        way_on = f"did you mean {near[0]!r}?" if near else f"sections: {', '.join(names)}"
        raise RequestError(f"no section, key or description has {word[:60]!r}; {way_on}")
    return found
