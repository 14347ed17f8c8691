"""Every key of an experiment with its values, default and meaning, read from the pydantic model.

For `slimfl keys`, for options, for hints and for the page on the configuration. The meaning is the
docstring under the field, written in Markdown.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from slimfl.experiment.experiment import Experiment
from slimfl.experiment.sections.population import DeviceClass
from slimfl.experiment.sections.section import Section

#: Section of the keys that are in none.
TOP = "experiment"


def section_of(field: FieldInfo) -> type[Section] | None:
    """The model of a key that contains other keys; None for any other."""
    model = field.annotation
    return model if isinstance(model, type) and issubclass(model, Section) else None


def _keys(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        section = section_of(field)
        if section is None:
            yield prefix + name, field
        else:
            yield from _keys(section, f"{prefix}{name}.")


#: The sections by name, and the field behind every dotted key.
SECTIONS = {
    name: section
    for name, field in Experiment.model_fields.items()
    if (section := section_of(field)) is not None
}
KEYS = dict(_keys(Experiment))


def choices_of(annotation: Any) -> list[str]:
    """The words that a key accepts, if it accepts one of a list of words."""
    return [choice for choice in get_args(annotation) if isinstance(choice, str)]


def default_of(field: FieldInfo) -> Any:
    """The default of a key as in JSON; None if it is absent by default."""
    default = field.get_default(call_default_factory=True, validated_data={})
    return None if default is PydanticUndefined else to_jsonable_python(default)


@dataclass(frozen=True)
class Key:
    """One key of an experiment."""

    name: str
    """With the section before a dot."""
    values: str
    """Allowed words, or the kind of value with its limits; Markdown."""
    default: Any
    """As in JSON; None if the key is absent by default."""
    meaning: str
    """Markdown."""


@dataclass(frozen=True)
class KeySection:
    """The keys of one section."""

    name: str
    meaning: str
    keys: tuple[Key, ...]


def schema() -> dict[str, Any]:
    """The JSON schema of an experiment's file, for editors."""
    return Experiment.model_json_schema()


def reference() -> list[KeySection]:
    """All sections with their keys, and the keys of a class of devices."""
    described = schema()
    models: dict[str, type[BaseModel]] = {TOP: Experiment}
    for name, section in SECTIONS.items():
        models[name] = section
        if name == "population":
            models["population.classes"] = DeviceClass
    found = []
    for name, model in models.items():
        properties = described["$defs"].get(model.__name__, described)["properties"]
        prefix = "" if name == TOP else f"{name.rpartition('.')[2]}."
        keys = tuple(
            Key(
                f"{prefix}{key}",
                _values(properties[key]) + (", required" if field.is_required() else ""),
                default_of(field),
                " ".join((field.description or "").split()),
            )
            for key, field in model.model_fields.items()
            if section_of(field) is None
        )
        found.append(KeySection(name, inspect.getdoc(model) or "", keys))
    return found


def _values(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_values(s) for s in schema["anyOf"] if s.get("type") != "null")
    if "oneOf" in schema:  # what a device class says about its devices
        return "number, list or distribution"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    match schema.get("type"):
        case "array":
            fixed = schema.get("prefixItems")
            if fixed:
                return f"list of {len(fixed)}: {_values(fixed[0])}"
            return f"list of: {_values(schema.get('items', {}))}"
        case "integer":
            return "whole number" + _bounds(schema)
        case "number":
            return "number" + _bounds(schema)
        case "boolean":
            return "`true`, `false`"
        case "object":
            return "table"
        case "string":
            return "path" if schema.get("format") == "path" else "text"
    return "any"


def _bounds(schema: dict[str, Any]) -> str:
    signs = (
        ("exclusiveMinimum", "above"),
        ("minimum", "at least"),
        ("exclusiveMaximum", "below"),
        ("maximum", "at most"),
    )
    parts = [f"{word} {schema[key]:g}" for key, word in signs if key in schema]
    return " " + ", ".join(parts) if parts else ""
