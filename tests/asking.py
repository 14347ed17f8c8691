"""Experiments in one line: `noise_dbm` or `radio__noise_dbm` for the key `radio.noise_dbm`.

Tests name many keys; the library itself has one spelling, sections inside an experiment.
"""

from typing import Any

import slimfl
from slimfl import experiment as config
from slimfl.experiment.short_names import SHORT_NAMES

#: Where an object belongs that is given by its kind.
PARTS = {"dataset": "data.dataset", "network": "model.name", "channel": "radio.model"}


def nested(keys: dict[str, Any]) -> dict[str, Any]:
    """Sections of the keys that were named in one line."""
    found: dict[str, Any] = {}
    for key, value in keys.items():
        if value is None:
            continue
        dotted = SHORT_NAMES.get(key, key.replace("__", "."))
        if key in PARTS and not isinstance(value, str | list):
            dotted = PARTS[key]
        section, _, name = dotted.rpartition(".")
        inside = found
        for part in filter(None, section.split(".")):
            inside = inside.setdefault(part, {})
        if isinstance(inside.get(name), dict) and isinstance(value, dict):
            inside[name] |= value
        else:
            inside[name] = value
    return found


def load(source: Any = None, overrides: Any = (), **keys: Any) -> list[config.Experiment]:
    """All experiments that these keys describe."""
    return config.load(source, config.asked(overrides, nested(keys)))


def run(
    source: Any = None,
    *,
    out: Any = None,
    callbacks: Any = (),
    progress: bool = False,
    trust: Any = (),
    **keys: Any,
) -> Any:
    """Run the experiment, or one per seed of a list."""
    if isinstance(keys.get("seed"), list):
        changes = {"method": "slimfl", **nested(keys)}
        return slimfl.compare(
            source, out=out, callbacks=callbacks, progress=progress, trust=trust, **changes
        )
    one = slimfl.Experiment.read(source or {}, **nested(keys))
    return one.run(out, callbacks=callbacks, progress=progress, trust=trust)


def compare(source: Any = None, **keys: Any) -> Any:
    """Compare runs of SlimFL, unless a method is named."""
    own = ("out", "on", "workers", "callbacks", "progress", "trust", "seeds")
    given = {key: keys.pop(key) for key in own if key in keys}
    return slimfl.compare(source, **given, **{"method": "slimfl", **nested(keys)})
