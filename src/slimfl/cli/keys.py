"""`slimfl keys`: what an experiment's file and `--set` can say."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from slimfl.cli.output import Json, show, show_json, table

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
    schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            help="Print the JSON schema of an experiment's file, which editors read: "
            "slimfl keys --schema > experiment.schema.json.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """List the keys of an experiment with their values and defaults.

    A key is set in a TOML file or with --set KEY=VALUE; several values are one run each.
    """
    from slimfl.experiment import reference

    if schema:
        show_json(reference.schema())
        return
    sections = reference.reference()
    found = sections if word is None else _chosen(sections, word)
    if json:
        show_json({"keys": [entry for section in found for entry in _entries(section)]})
    else:
        show(*map(_table, found))


def _chosen(sections: "list[KeySection]", word: str) -> "list[KeySection]":
    """The section of that name, or the keys in which the word occurs."""
    import difflib
    from dataclasses import replace

    from slimfl.errors import RequestError
    from slimfl.experiment.short_names import meant

    other, names = meant(word), [section.name for section in sections]
    if word in names:
        return [sections[names.index(word)]]
    found = []
    for section in sections:
        keys = tuple(
            key
            for key in section.keys
            if word.lower() in f"{key.name} {key.meaning}".lower() or key.name == other
        )
        if word and keys:
            found.append(replace(section, keys=keys))
    if not found:
        near = difflib.get_close_matches(word.lower().partition(".")[0], names, 1, 0.5)
        way_on = f"did you mean {near[0]!r}?" if near else f"sections: {', '.join(names)}"
        raise RequestError(f"no section, key or description has {word[:60]!r}; {way_on}")
    return found


def _entries(section: "KeySection") -> list[dict[str, Any]]:
    return [
        {
            "key": key.name,
            "section": section.name,
            "default": key.default,
            "values": key.values.replace("`", ""),
            "meaning": key.meaning.replace("`", ""),
        }
        for key in section.keys
    ]


def _table(section: "KeySection") -> Any:
    import json

    # two columns, because a key that is wrapped cannot be copied
    rows = []
    for entry in _entries(section):
        default = "absent" if entry["default"] is None else json.dumps(entry["default"])
        told = f"{entry['meaning']}\n{entry['values']}; default: {default}"
        rows.append({"key": entry["key"], "meaning; values; default": told})
    meaning = " ".join(section.meaning.replace("`", "").split())
    return table(rows, f"{section.name}: {meaning}")
