"""A mistake in an experiment as one sentence that says what to change."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pydantic
from pydantic import BaseModel

from slimfl.errors import RequestError
from slimfl.experiment.experiment import Experiment
from slimfl.experiment.keys import KEYS, SECTIONS, choices_of, section_of
from slimfl.experiment.short_names import HINTS, meant

#: Maximum length of a text (a path), depth of nested lists, and number of values.
MOST_CHARACTERS, MOST_DEPTH, MOST_VALUES = 4096, 8, 10_000


def reject(values: Mapping[str, Any], model: type[BaseModel] = Experiment) -> None:
    """Refuse huge values and unknown keys before validation; the nearest known key is named."""
    where = () if model is Experiment else _place(model)
    _reject_oversized(values, ".".join(where))
    _reject_misplaced(values, model, where)


def _reject_oversized(values: Mapping[str, Any], where: str) -> None:
    left = MOST_VALUES
    waiting: list[tuple[str, Any, int]] = [(where, values, 0)]
    while waiting:
        dotted, value, depth = waiting.pop()
        left -= 1
        problem = _unreasonable(value) or (depth > MOST_DEPTH and "is nested too deeply")
        if problem or left < 0:
            shown = shortened(repr(dotted)) if dotted else "the experiment"
            raise RequestError(f"{shown} {problem or 'has too many values'}; give it another value")
        items: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else ()
        if isinstance(value, list | tuple):
            items = ((str(i), one) for i, one in enumerate(value[: left + 1], 1))
        for key, inside in items:
            waiting.append((".".join(filter(None, (dotted, str(key)))), inside, depth + 1))


def _unreasonable(value: Any) -> str | None:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "is a number of more than 64 bits"
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, str):
        if len(value) > MOST_CHARACTERS:
            return f"has more than {MOST_CHARACTERS:,} characters"
        if any(unicodedata.category(character) in ("Cc", "Cs") for character in value):
            return "has control characters, or some that are not Unicode"
    return None


def shortened(text: str, most: int = 60) -> str:
    """The beginning of a text that may be long."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _reject_misplaced(
    values: Mapping[str, Any], model: type[BaseModel], where: tuple[str, ...]
) -> None:
    for key, value in values.items():
        field = model.model_fields.get(key)
        dotted = ".".join((*where, key))
        if field is None:
            shown = shortened(repr(dotted))
            raise RequestError(f"unknown key {shown}{_nearest(dotted, [*model.model_fields])}")
        section = section_of(field)
        if isinstance(value, bool) and field.annotation is not bool:
            choices = choices_of(field.annotation)
            quoted = " or ".join(f'"{choice}"' for choice in choices) or "a value"
            raise RequestError(f"{dotted}: must not be true or false; give it {quoted}")
        if section is not None:
            if isinstance(value, dict):
                _reject_misplaced(value, section, (*where, key))
            elif not isinstance(value, section):
                inside = f"{dotted}.{next(iter(section.model_fields))}"
                raise RequestError(
                    f"{dotted!r} is a section; give keys inside it, such as {inside!r}"
                )


def _place(model: type[BaseModel]) -> tuple[str, ...]:
    """The name of a section, as a path; of a class of devices, none."""
    return tuple(name for name, section in SECTIONS.items() if section is model)


def _nearest(dotted: str, siblings: list[str]) -> str:
    """The key that was probably meant: by its last part, beside the mistyped one, or anywhere."""
    parent, _, last = dotted.rpartition(".")
    by_last = {key.rpartition(".")[2]: key for key in reversed(KEYS)}
    beside = {name: ".".join(filter(None, (parent, name))) for name in siblings}
    exact = meant(last) or by_last.get(last.strip("-").replace("-", "_").lower())
    if exact is not None and exact != dotted:
        return f"; did you mean {exact!r}?"
    # a whole key is near every key of its own section, so only its last part is compared there
    whole = {} if parent in Experiment.model_fields else {key: key for key in KEYS}
    for written, keys in ((last, beside), (dotted, whole), (last, {**HINTS, **by_last})):
        for near in difflib.get_close_matches(written, keys, 1, 0.75):
            return f"; did you mean {keys[near]!r}?"
    return "; `slimfl keys` lists the keys"


def sentence(error: pydantic.ValidationError, model: type[BaseModel] = Experiment) -> RequestError:
    """The first error in the user's terms: which key, what it must be, what it is."""
    return RequestError(_words(_blamed(error), model))


def _words(first: Any, model: Any) -> str:
    field: Any = None
    parts = [] if model is Experiment else [*_place(model)]
    for part in first["loc"]:
        # pydantic appends the tried branch of a union to the location, after the user's key
        if isinstance(part, int) or not hasattr(model, "model_fields"):
            break
        field = model.model_fields.get(part)
        if field is None:
            break
        parts.append(str(part))
        model = field.annotation
    message: str = first["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if not parts or (first["type"] == "value_error" and " " in message and "must" not in message):
        return message
    given = first.get("input")
    choices = choices_of(field.annotation) if field else []
    if len(choices) > 1 and isinstance(given, str):
        message = f"must be one of {', '.join(choices)}"
    message = _PLAIN_WORDS.get(first["type"], message)
    shown = "" if isinstance(given, dict) else f" (it is {shortened(repr(given))})"
    return f"{'.'.join(parts)}: {message}{shown}"


#: Replacements for pydantic's messages that mention Python types.
_PLAIN_WORDS = {
    "tuple_type": "must be a list, in square brackets; after --set, 0.8,0.2 will do",
    "missing": "must have 2 values",
    "too_long": "must have 2 values",
    "path_type": "must be the path of a folder",
}


def _blamed(error: pydantic.ValidationError) -> Any:
    """Among the errors of a union's branches, the one about an element of the given list."""
    errors = error.errors()
    same_key = [e for e in errors if e["loc"][:2] == errors[0]["loc"][:2]]
    listed = (e for e in same_key if any(isinstance(p, int) for p in e["loc"]))
    number_for_list = (
        e
        for e in same_key
        if e["type"] == "tuple_type"
        and errors[0]["type"] == "literal_error"
        and isinstance(e["input"], int | float)
    )
    return next(listed, None) or next(number_for_list, errors[0])
