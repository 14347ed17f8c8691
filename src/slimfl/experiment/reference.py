"""Every key with its values, default and meaning, read from the pydantic model.

For `slimfl keys`, for options and for the page on the configuration. The meaning is the docstring
under the field, written in Markdown.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from slimfl.experiment.experiment import Experiment
from slimfl.experiment.sections.population import DeviceClass
from slimfl.experiment.sections.section import Section

#: Section of the keys that are in none.
TOP = "experiment"


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
    """All sections with their keys."""
    described = schema()
    found = []
    for section, model, prefix in _sections():
        properties = described["$defs"].get(model.__name__, described)["properties"]
        keys = tuple(
            Key(
                f"{prefix}{name}",
                _values(properties[name]) + (", required" if field.is_required() else ""),
                default_of(field),
                " ".join((field.description or "").split()),
            )
            for name, field in model.model_fields.items()
            if not _is_section(field.annotation)
        )
        found.append(KeySection(section, inspect.getdoc(model) or "", keys))
    return found


def default_of(field: FieldInfo) -> Any:
    """The default of a key as in JSON; None if it is absent by default."""
    default = field.get_default(call_default_factory=True, validated_data={})
    return None if default is PydanticUndefined else to_jsonable_python(default)


def _sections() -> Iterator[tuple[str, type[BaseModel], str]]:
    """The name of every section, its model, and what is before the names of its keys."""
    yield TOP, Experiment, ""
    for name, field in Experiment.model_fields.items():
        model = field.annotation
        if isinstance(model, type) and issubclass(model, Section):
            yield name, model, f"{name}."
        if name == "population":
            yield "population.classes", DeviceClass, "classes."


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Section)


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
