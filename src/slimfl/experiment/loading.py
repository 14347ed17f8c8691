"""From a TOML file, overrides and keywords to experiments, and back to a file."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, Literal, get_origin

import pydantic

from slimfl import files
from slimfl.errors import RequestError
from slimfl.experiment.experiment import NAMES, Experiment
from slimfl.experiment.mistakes import reject_misplaced, reject_oversized, sentence, shortened
from slimfl.experiment.naming import module_of
from slimfl.experiment.sections import Section
from slimfl.experiment.short_names import SHORT_NAMES

#: Maximum size of a file, and maximum number of experiments in it.
MOST_BYTES, MOST_EXPERIMENTS = 1 << 20, 10_000


#: Where an experiment is described: a TOML file, what such a file contains, or the experiment.
Source = Path | str | Mapping[str, Any] | Experiment | None


def build(values: dict[str, Any]) -> Experiment:
    """Validate a nested dictionary; the error is one sentence that says what to change."""
    reject_oversized(values)
    reject_misplaced(values)
    try:
        return Experiment.model_validate(values)
    except pydantic.ValidationError as error:
        raise RequestError(sentence(error)) from None


def load(source: Source = None, overrides: Iterable[str] = (), **values: Any) -> list[Experiment]:
    """The experiments of a source, changed by `key=value` overrides and by keyword values.

    `method` and `seed` may be lists, which gives one experiment per combination. Dotted keywords
    are passed with two underscores, `data__alpha=0.1`, or by their short name, `alpha=0.1`.
    """
    tree = _tree(source)
    tree.pop("provenance", None)
    change(tree, asked(overrides, values))
    methods = _as_list(tree.pop("method", Experiment.model_fields["method"].default))
    seeds = _as_list(tree.pop("seed", Experiment.model_fields["seed"].default))
    if not methods or not seeds:
        raise RequestError("method and seed each need at least one value")
    if len(methods) * len(seeds) > MOST_EXPERIMENTS:
        raise RequestError(f"method and seed give more than {MOST_EXPERIMENTS:,} runs; give fewer")
    # among several methods, the options are for the user's own
    mixed = any(module_of(m) is not None for m in methods)
    plain = {key: value for key, value in tree.items() if key != "method_options"}
    trees = [plain if mixed and module_of(m) is None else tree for m in methods]
    return [
        build({"method": m, "seed": s, **one})
        for s in seeds
        for m, one in zip(methods, trees, strict=True)
    ]


def _tree(source: Source) -> dict[str, Any]:
    match source:
        case None:
            return {}
        case str() | Path():
            return read_toml(Path(source))
        case Experiment():
            return source.model_dump(mode="json", exclude_none=True)
        case Mapping():
            return copy.deepcopy(dict(source))
    raise RequestError(
        "an experiment is described by the path of a TOML file, a dictionary or an Experiment, "
        f"and this is of type {type(source).__name__}"
    )


def typed_names(overrides: Iterable[str] = (), **values: Any) -> list[str]:
    """Names in overrides and keywords, which the user typed, unlike names in a file."""
    tree: dict[str, Any] = {}
    change(tree, asked(overrides, values))
    named = []
    for dotted in NAMES:
        value: Any = tree
        for key in dotted.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        named += [
            str(one.get("name")) if isinstance(one, dict) else one
            for one in _as_list(value)
            if isinstance(one, str | dict)
        ]
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
    return tomli_w.dumps(tree)


def asked(overrides: Iterable[str], values: Mapping[str, Any]) -> dict[str, Any]:
    """What `key=value` overrides and keyword values ask for, under dotted keys.

    Their order means nothing, so a key with two values is refused.
    """
    given = [_key_and_value(text) for text in overrides]
    given += [(key.replace("__", "."), value) for key, value in values.items() if value is not None]
    found: dict[str, Any] = {}
    for key, value in given:
        for dotted, one in _leaves(SHORT_NAMES.get(key, key), value):
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
    return key.strip(), _literal(value.strip(), SHORT_NAMES.get(key.strip(), key.strip()))


def _leaves(dotted: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The keys inside a section that is given as a table; any other value as it is."""
    if isinstance(value, Mapping) and dotted in _SECTIONS:
        for key, inside in value.items():
            yield from _leaves(f"{dotted}.{key}", inside)
    else:
        yield dotted, value


def _same(dotted: str, one: Any, other: Any) -> bool:
    if dotted in ("method", "seed"):
        one, other = _as_list(one), _as_list(other)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, repeat(""), one, other))
    if isinstance(one, Path) or isinstance(other, Path):
        return Path(one).absolute() == Path(other).absolute()
    return isinstance(one, bool) == isinstance(other, bool) and (
        bool(one == other) or str(one) == str(other)
    )


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]


#: Keys that say the same thing in different ways. Those of one request must agree (the sections
#: check it); they replace all of their rivals in the file that the request changes.
RIVALS = (
    ("radio.channel", "radio.noise_dbm", "radio.noise_density_dbm_hz"),
    ("radio.fading_correlation", "radio.doppler_hz"),
    ("training.epochs", "training.steps"),
    ("population.preset", "population.file", "population.classes"),
)

_SECTIONS = {
    name
    for name, field in Experiment.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Section)
}


def _assign(tree: dict[str, Any], dotted: str, value: Any) -> None:
    *parents, last = dotted.split(".")
    for parent in parents:
        tree = tree.setdefault(parent, {})
        if not isinstance(tree, dict):
            raise RequestError(f"{dotted!r} has no section {parent!r}; check the key")
    tree[last] = value


def _literal(text: str, key: str = "") -> Any:
    """A TOML value if the text is one (`-40`, `true`, `[0.8, 0.2]`), else the text itself.

    A key that takes words gets the text: `true` is a value of `radio.accounting`.
    """
    try:
        value = files.parse_toml(f"v = {text}")["v"]
    except files.UnreadableError as error:
        if error.syntax:
            if re.fullmatch(r"[-+\d.eE, ]+,[-+\d.eE, ]+", text):
                return _literal(f"[{text}]", key)
            return text
        raise RequestError(f"the value of {key!r} cannot be read: {error}") from None
    return text if not isinstance(value, str | list | dict) and _takes_words(key) else value


def _takes_words(key: str) -> bool:
    """True if the value of a dotted key is text."""
    model: Any = Experiment
    for part in key.split("."):
        field = getattr(model, "model_fields", {}).get(part)
        if field is None:
            return False
        model = field.annotation
    return model in (str, Path, Path | None) or get_origin(model) is Literal
