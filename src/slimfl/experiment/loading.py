"""From a TOML file, changes and `key=value` texts to experiments, and back to a file.

A list where a key takes one value means several experiments, one per combination.
"""

from __future__ import annotations

import copy
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import pydantic

from slimfl import files
from slimfl.errors import RequestError
from slimfl.experiment.experiment import NAMES, Experiment
from slimfl.experiment.keys import KEYS, SECTIONS, choices_of
from slimfl.experiment.mistakes import reject, sentence, shortened
from slimfl.experiment.naming import module_of
from slimfl.experiment.sections.section import Section

#: Maximum size of a file, and maximum number of experiments in one request.
MOST_BYTES, MOST_EXPERIMENTS = 1 << 20, 10_000

#: Names the schema that `slimfl keys --schema` prints, for editors.
SCHEMA = "#:schema experiment.schema.json"

#: Where an experiment is described: a TOML file, what such a file contains, or the experiment.
Source = Path | str | Mapping[str, Any] | Experiment | None

#: Keys that say the same thing in different ways. Those of one request must agree (the sections
#: check it); they replace all of their rivals in the file that the request changes.
RIVALS = (
    ("radio.channel", "radio.noise_dbm", "radio.noise_density_dbm_hz"),
    ("radio.fading_correlation", "radio.doppler_hz"),
    ("training.epochs", "training.steps"),
    ("population.preset", "population.file", "population.classes"),
)


class Point(NamedTuple):
    """One of several experiments, and the settings that distinguish it besides method and seed."""

    experiment: Experiment
    settings: dict[str, Any]


def build(values: dict[str, Any]) -> Experiment:
    """Validate a nested dictionary; the error is one sentence that says what to change."""
    reject(values)
    try:
        return Experiment.model_validate(values)
    except pydantic.ValidationError as error:
        raise sentence(error) from None


def load(source: Source = None, changes: Mapping[str, Any] | None = None) -> list[Experiment]:
    """The experiments of a source after `changes`, a nested dictionary."""
    return [point.experiment for point in points(source, asked((), changes or {}))]


def points(source: Source, given: Mapping[str, Any]) -> list[Point]:
    """The experiments of a source, changed by what was `asked`: all combinations of its lists."""
    tree = tree_of(source)
    tree.pop("provenance", None)
    change(tree, given)
    axes = {key: values for key, value in _leaves("", tree) if (values := _several(key, value))}
    defaults = Experiment.model_fields
    methods = axes.pop("method", None) or [tree.get("method", defaults["method"].default)]
    seeds = axes.pop("seed", None) or [tree.get("seed", defaults["seed"].default)]
    if math.prod(map(len, (methods, seeds, *axes.values()))) > MOST_EXPERIMENTS:
        raise RequestError(f"these lists give more than {MOST_EXPERIMENTS:,} runs; give fewer")
    # among several methods, the options are for the user's own
    mixed = any(module_of(method) is not None for method in methods)
    found = []
    for *values, seed, method in itertools.product(*axes.values(), seeds, methods):
        settings = dict(zip(axes, values, strict=True))
        one = copy.deepcopy(tree) | {"method": method, "seed": seed}
        for key, value in settings.items():
            _assign(one, key, value)
        if mixed and module_of(method) is None:
            one.pop("method_options", None)
        found.append(Point(build(one), settings))
    return found


def tree_of(source: Source) -> dict[str, Any]:
    """What a source says, as a nested dictionary."""
    match source:
        case None:
            return {}
        case str() | Path():
            return read_toml(Path(source))
        case Experiment():
            return source.model_dump(exclude_unset=True, exclude_none=True)
        case Mapping():
            return copy.deepcopy(dict(source))
    raise RequestError(
        "an experiment is described by the path of a TOML file, a dictionary or an Experiment, "
        f"and this is of type {type(source).__name__}"
    )


def typed_names(given: Mapping[str, Any]) -> list[str]:
    """Names of parts in what was `asked`, which the user typed, unlike names in a file."""
    named = []
    for key in NAMES:
        value = given.get(key)
        for one in value if isinstance(value, list | tuple) else [value]:
            name = one.get("name") if isinstance(one, dict) else one
            named += [name] if isinstance(name, str) else []
    return named


def read_toml(path: Path) -> dict[str, Any]:
    """The contents of a TOML file; refused with one sentence if it cannot be read."""
    try:
        return files.read_toml(path, MOST_BYTES)
    except FileNotFoundError:
        raise RequestError(f"there is no file {path}; give the path of a TOML file") from None
    except OSError as error:
        raise RequestError(f"{path} cannot be read ({error.strerror}); give another file") from None
    except files.UnreadableError as error:
        raise RequestError(f"{path} is not valid TOML: {error}; give another file") from None


def dump(experiment: Experiment, **provenance: Any) -> str:
    """The TOML text with every value resolved; `provenance` becomes a separate section."""
    import tomli_w

    tree = experiment.model_dump(mode="json", exclude_none=True)
    if provenance:
        tree["provenance"] = provenance
    return f"{SCHEMA}\n\n{tomli_w.dumps(tree)}"


def asked(texts: Iterable[str], changes: Mapping[str, Any]) -> dict[str, Any]:
    """What `key=value` texts and nested changes ask for, under dotted keys.

    Their order means nothing, so a key with two values is refused.
    """
    given = [_key_and_value(text) for text in texts]
    given += [(key, value) for key, value in changes.items() if value is not None]
    found: dict[str, Any] = {}
    for key, value in given:
        for dotted, one in _leaves(key, value):
            if dotted in found and not _same(dotted, found[dotted], one):
                shown = " and as ".join(sorted(map(shortened, (repr(found[dotted]), repr(one)))))
                raise RequestError(f"{dotted} is given twice, as {shown}; give it once")
            found[dotted] = one
    for dotted in found:
        inside = next((other for other in found if other.startswith(f"{dotted}.")), None)
        if inside is not None:
            raise RequestError(f"give {dotted} or {inside}, not both")
    return found


def change(tree: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Put what was `asked` into a nested dictionary, in place of its values and their rivals."""
    for rivals in RIVALS:
        if not given.keys() & {*rivals}:
            continue
        for dotted in rivals:
            section, _, key = dotted.partition(".")
            if isinstance(tree.get(section), dict):
                tree[section].pop(key, None)
    for dotted, value in given.items():
        _assign(tree, dotted, value)


def _key_and_value(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise RequestError(f"--set takes key=value, for example radio.noise_dbm=-40, not {text!r}")
    return key.strip(), literal(key.strip(), value.strip())


def _leaves(dotted: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The keys inside a section that is given as a table or an object; any other value as is."""
    if isinstance(value, Section):
        value = value.model_dump(exclude_unset=True, exclude_none=True)
    if isinstance(value, Mapping) and (not dotted or dotted in SECTIONS):
        for key, inside in value.items():
            yield from _leaves(f"{dotted}.{key}" if dotted else str(key), inside)
    else:
        yield dotted, value


def _several(dotted: str, value: Any) -> list[Any] | None:
    """The values of a list where one value belongs; None if the value is one."""
    field = KEYS.get(dotted)
    if field is None or not isinstance(value, list):
        return None
    if not value and not _levels(field.annotation):
        raise RequestError(f"{dotted} is an empty list; give at least one value")
    words = [word for one in _branches(field.annotation) for word in choices_of(one)]
    several = _depth(value) > _levels(field.annotation) or any(
        isinstance(one, str) and one in words for one in value
    )
    return value if several else None


def _branches(annotation: Any) -> set[Any]:
    """What a value may be, apart from absent."""
    union = get_origin(annotation) in (Union, UnionType)
    return {*(get_args(annotation) if union else (annotation,))} - {type(None), Any}


def _depth(value: Any) -> int:
    """How many lists are around the innermost value."""
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list | tuple) else 0


def _levels(annotation: Any) -> int:
    """How many lists a key takes around its innermost value."""
    own = get_origin(annotation) is tuple
    return own + max(map(_levels, get_args(annotation)), default=0)


def _same(dotted: str, one: Any, other: Any) -> bool:
    if dotted in ("method", "seed"):
        one, other = (each if isinstance(each, list) else [each] for each in (one, other))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, repeat(""), one, other))
    if isinstance(one, Path) or isinstance(other, Path):
        return Path(one).absolute() == Path(other).absolute()
    return isinstance(one, bool) == isinstance(other, bool) and (
        bool(one == other) or str(one) == str(other)
    )


def _assign(tree: dict[str, Any], dotted: str, value: Any) -> None:
    *parents, last = dotted.split(".")
    for parent in parents:
        inside = tree.setdefault(parent, {})
        if isinstance(inside, Section):
            inside = tree[parent] = inside.model_dump(exclude_unset=True, exclude_none=True)
        if not isinstance(inside, dict):
            raise RequestError(f"{dotted!r} has no section {parent!r}; check the key")
        tree = inside
    tree[last] = value


def literal(key: str, text: str) -> Any:
    """A TOML value if the text is one (`-40`, `true`, `[0.8, 0.2]`), else the text itself.

    A key that takes words gets the text: `true` is a value of `radio.accounting`. Values separated
    by commas are a list.
    """
    try:
        value = files.parse_toml(f"v = {text}")["v"]
    except files.UnreadableError as error:
        if not error.syntax:
            raise RequestError(f"the value of {key!r} cannot be read: {error}") from None
        if re.search(r"(^|,)\s*(,|$)", text) and not _takes(key, Path):
            raise RequestError(
                f"{key} has an empty value; give values separated by commas"
            ) from None
        parts = [] if _takes(key, Path) else _parts(text)
        return [literal(key, part.strip()) for part in parts] if len(parts) > 1 else text
    words = not isinstance(value, str | list | dict) and _takes(key, str, Path, Literal)
    return text if words else value


def _parts(text: str) -> list[str]:
    """What is between commas; brackets keep theirs."""
    return re.findall(r"(?:[^,\[{]|\[[^\]]*\]|\{[^}]*\})+", text)


def _takes(key: str, *kinds: Any) -> bool:
    """True if the value of a dotted key is always of one of these kinds, if it is there."""
    field = KEYS.get(key)
    if field is None:
        return False
    return all(one in kinds or get_origin(one) in kinds for one in _branches(field.annotation))
