"""`slimfl keys`: what an experiment's file and `--set` can say."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from slimfl.cli.output import Json, show, show_json

if TYPE_CHECKING:
    from slimfl.experiment.reference import KeySection


def keys(
    word: Annotated[
        str | None,
        typer.Argument(
            metavar="SECTION_OR_WORD",
            help="A section, such as radio, or a word in the key or its description.",
            show_default="all keys",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List the keys of an experiment with their values and defaults.

    A key is set in a TOML file, with --set KEY=VALUE or with --grid KEY=VALUE,VALUE.
    """
    from slimfl.experiment.reference import reference

    found = reference() if word is None else _chosen(reference(), word)
    if json:
        show_json({"keys": [entry for section in found for entry in _entries(section)]})
    else:
        show(*map(_table, found))


def _chosen(sections: "list[KeySection]", word: str) -> "list[KeySection]":
    """The section of that name, or the keys in which the word occurs."""
    from dataclasses import replace

    from slimfl.experiment.short_names import meant

    named = [section for section in sections if section.name == word]
    if named:
        return named
    wanted, other = word.lower(), meant(word)
    found = []
    for section in sections:
        keys = tuple(
            key
            for key in section.keys
            if wanted in f"{key.name} {key.meaning}".lower() or key.name == other
        )
        if wanted and keys:
            found.append(replace(section, keys=keys))
    if not found:
        _refuse(sections, word)
    return found


def _refuse(sections: "list[KeySection]", word: str) -> None:
    import difflib

    from slimfl.errors import RequestError

    names = [section.name for section in sections]
    near = difflib.get_close_matches(word.lower().partition(".")[0], names, 1, 0.5)
    way_on = f"did you mean the section {near[0]!r}?" if near else f"sections: {', '.join(names)}"
    shown = word if len(word) <= 60 else f"{word[:57]}..."
    raise RequestError(f"no section is called {shown!r} and no key or description has it; {way_on}")


def _entries(section: "KeySection") -> list[dict[str, Any]]:
    return [
        {
            "key": key.name,
            "section": section.name,
            "default": key.default,
            "values": _plain(key.values),
            "meaning": _plain(key.meaning),
        }
        for key in section.keys
    ]


def _table(section: "KeySection") -> Any:
    import json

    from rich import box
    from rich.table import Table

    table = Table(
        title=f"{section.name}: {_plain(section.meaning)}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    # two columns, because a key that is wrapped cannot be copied
    table.add_column("key")
    table.add_column("meaning; values; default")
    for entry in _entries(section):
        default = "absent" if entry["default"] is None else json.dumps(entry["default"])
        table.add_row(entry["key"], f"{entry['meaning']}\n{entry['values']}; default: {default}")
    return table


def _plain(markdown: str) -> str:
    return " ".join(markdown.replace("`", "").split())
