"""Every key with its values, default and meaning, read from the pydantic model.

For `slimfl keys` and for the page on the configuration. The meaning is the docstring under the
field, written in Markdown.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined, to_jsonable_python

from slimfl.experiment import experiment, sections
from slimfl.experiment.experiment import Experiment
from slimfl.experiment.sections import Section
from slimfl.experiment.sections.population import DeviceClass

#: Section of the keys that are in none.
TOP = "experiment"

#: Where the source has no docstring because the name says it; here for readers of the reference.
MEANINGS = {
    "seed": "Fixes every random draw: partition, initialisation, batches, fading.",
    "rounds": "Number of rounds.",
    "engine": "The engine that trains; `auto` chooses the fastest that can run the experiment.",
    "classes.name": "Name of the class; letters, digits and . + - _.",
    "data.shards_per_device": "`shards` only: number of label-sorted shards per device.",
    "data.test_samples": "Number of test samples to use; all when absent.",
    "model.widths": "The nested widths, ascending, ending with 1.0.",
    "model.initialisation": "How the weights are initialised.",
    "training.optimiser": "The local optimiser.",
    "training.learning_rate": "The learning rate of `constant`, and the start of `cosine`.",
    "training.schedule": "How the learning rate changes over the rounds.",
    "training.nesterov": "SGD only.",
    "training.weight_decay": "This value times the weight is added to the gradient.",
    "training.batch_size": "Samples in one local step.",
    "radio.noise_dbm": "Noise power; set by `channel` when absent.",
    "radio.power_dbm": "Transmit power of a device.",
    "radio.distance_m": "Distance between device and server.",
    "radio.path_loss_exponent": "The exponent of the distance in the path loss.",
    "radio.bandwidth_hz": "Bandwidth of one device; sets airtime and energy.",
    "radio.bits_per_parameter": 'Used by `accounting = "true"`.',
    "federation.devices": "Number of devices.",
    "federation.average": "Whether devices count equally or by their number of samples.",
    "federation.evaluate_every": "Rounds between two evaluations on the test set.",
    "federation.checkpoint_every": "Rounds between two checkpoints.",
    "federation.convergence_window": "Number of rounds in the window of the convergence test.",
    "federation.convergence_accuracy": "The mean accuracy over the window must be above this.",
    "federation.convergence_deviation": "The deviation over the window must be below this.",
}


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


def reference() -> list[KeySection]:
    """All sections with their keys; a key without a meaning is an error."""
    documented = _field_docstrings()
    schema = Experiment.model_json_schema()
    definitions = schema.get("$defs", {})
    found = []
    for section, model, prefix in _sections():
        properties = definitions.get(model.__name__, schema)["properties"]
        keys = []
        for name, field in model.model_fields.items():
            if _is_section(field.annotation):
                continue
            key = f"{prefix}{name}"
            meaning = documented.get((model.__name__, name)) or MEANINGS.get(key)
            if not meaning:
                raise ValueError(f"{key} has no docstring in config/sections, no meaning here")
            default = field.get_default(call_default_factory=True)
            default = None if default is PydanticUndefined else to_jsonable_python(default)
            values = _values(properties[name]) + (", required" if field.is_required() else "")
            keys.append(Key(key, values, default, meaning))
        found.append(KeySection(section, inspect.getdoc(model) or "", tuple(keys)))
    return found


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


def _field_docstrings() -> dict[tuple[str, str], str]:
    """The string under a field, by (class, field)."""
    found = {}
    files = [Path(experiment.__file__), *sorted(Path(sections.__file__).parent.glob("*.py"))]
    nodes = [n for file in files for n in ast.parse(file.read_text(encoding="utf-8")).body]
    for node in nodes:
        if not isinstance(node, ast.ClassDef):
            continue
        for field, after in zip(node.body, node.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(after.value.value, str)
            ):
                found[node.name, field.target.id] = " ".join(after.value.value.split())
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
