"""The caller's own objects in place of what an experiment names, and how they are recorded.

A run folder cannot hold an object. It holds a readable name and a fingerprint, so that a run can
only be resumed with the objects it was made with.
"""

import dataclasses
import hashlib
import json
from collections.abc import Container, Mapping
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from slimfl.data import Dataset
from slimfl.errors import RequestError
from slimfl.nn import Vector

if TYPE_CHECKING:
    from torch import nn

#: A name and a fingerprint for every kind of object that was given.
Given = dict[str, dict[str, str]]

#: Longer descriptions are recorded as their digest.
_READABLE = 600

_DEPTH = 6


def of_dataset(dataset: Dataset) -> dict[str, str]:
    """Name and contents; the author may have made up the dataset's own checksum."""
    digest = hashlib.sha256(str(dataset.classes).encode())
    for samples in (dataset.train, dataset.test):
        for array in (samples.images, samples.labels):
            digest.update(f"{array.dtype.str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
    return {"name": str(dataset.name), "fingerprint": digest.hexdigest()}


def of_network(network: "nn.Module", start: Vector) -> dict[str, str]:
    """Class, structure, and the weights that the first round starts from."""
    modules = [(name, type(module).__name__) for name, module in network.named_modules()]
    shapes = [(name, list(p.shape)) for name, p in network.named_parameters()]
    return {
        "name": _class_name(network),
        "fingerprint": _digest(json.dumps([modules, shapes])),
        "start": hashlib.sha256(np.ascontiguousarray(start).data).hexdigest(),
    }


def of_object(given: object) -> dict[str, str]:
    """Class and settings of a channel or a method."""
    text = _describe(given, _DEPTH)
    return {
        "name": _class_name(given),
        "fingerprint": text if len(text) <= _READABLE else _digest(text),
    }


def recorded(provenance: Mapping[str, Any]) -> Given | None:
    """The objects that a run folder records; None for folders of versions that recorded none."""
    table = provenance.get("own")
    if not isinstance(table, dict):
        return None
    return {
        str(kind): {str(key): str(value) for key, value in entry.items()}
        for kind, entry in table.items()
        if isinstance(entry, dict)
    }


def check(provenance: Mapping[str, Any], given: Given) -> None:
    """Refuse to resume a run with other objects than it was made with."""
    made_with = recorded(provenance)
    if made_with is None:
        return
    require(provenance, given)
    for kind, entry in given.items():
        if kind not in made_with:
            raise RequestError(
                f"this run was made with the {kind} that its experiment.toml names; omit {kind}=..."
            )
        if made_with[kind].get("fingerprint") != entry["fingerprint"]:
            raise RequestError(
                f"this run was made with another {kind} ({_words(made_with[kind])}) than the one "
                f"given ({_words(entry)}): pass the original as {kind}=..."
            )


def require(provenance: Mapping[str, Any], given: Container[str]) -> None:
    """Refuse to resume a run without the objects that it was made with."""
    for kind, entry in (recorded(provenance) or {}).items():
        if kind not in given:
            raise RequestError(
                f"this run was made with a {kind} object ({_words(entry)}), which a run folder "
                f"cannot store; pass it in Python: slimfl.resume(path, {kind}=...)"
            )


def check_start(provenance: Mapping[str, Any], given: Given) -> None:
    """Refuse to restart a run with other initial weights than it recorded."""
    start = (recorded(provenance) or {}).get("network", {}).get("start")
    if start is not None and "network" in given and start != given["network"]["start"]:
        raise RequestError(
            "this run has no checkpoint yet, and the given network has different weights than the "
            "original; pass the network with its original weights"
        )


def _words(entry: Mapping[str, str]) -> str:
    name, fingerprint = entry.get("name", "unnamed"), entry.get("fingerprint", "")
    return f"{name}, {fingerprint if '(' in fingerprint else fingerprint[:12]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _class_name(given: object) -> str:
    return f"{type(given).__module__}:{type(given).__qualname__}"


def _describe(value: Any, depth: int) -> str:
    """A value's class and settings, without addresses or modules (a script is `__main__`)."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, FunctionType | MethodType | type):
        return value.__qualname__
    if isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(value)
        digest = hashlib.sha256(array.tobytes()).hexdigest()[:16]
        return f"array({array.dtype.str}, {array.shape}, {digest})"
    name = type(value).__qualname__
    if depth == 0:
        return name
    if isinstance(value, list | tuple):
        return f"[{', '.join(_describe(item, depth - 1) for item in value)}]"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(_describe(item, depth - 1) for item in value))}}}"
    if isinstance(value, Mapping):
        pairs = value.items()
        return f"{{{', '.join(f'{k!r}: {_describe(v, depth - 1)}' for k, v in pairs)}}}"
    if dataclasses.is_dataclass(value):
        settings = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    else:
        settings = getattr(value, "__dict__", {})
    # private attributes, such as caches, are not settings
    shown = [f"{k}={_describe(v, depth - 1)}" for k, v in settings.items() if k[:1] != "_"]
    return f"{name}({', '.join(shown)})"
