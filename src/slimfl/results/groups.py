"""Groups of runs that differ only in the seed, and their names.

A group's name says what was compared (the method, and other settings that vary); its scene says
under which conditions (channel, data, devices). Only groups of the same scene are compared.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slimfl.experiment import CHANNELS, OWN
from slimfl.experiment.identity import flat
from slimfl.experiment.naming import module_of
from slimfl.methods.names import title
from slimfl.results.records import RunRecord

#: Keys that change the randomness, the speed or the place of a run, not what it is about.
_NOT_COMPARED = {
    "seed", "engine", "device", "threads", "track", "callbacks", "data.dir",
    "federation.checkpoint_every", "radio.channel",  # implied by radio.noise_dbm
}  # fmt: skip

#: Keys of the conditions that are the same for every method of a comparison.
_SCENE = (
    "rounds", "data.", "model.widths", "radio.noise_dbm", "radio.distance_m", "radio.power_dbm",
    "radio.path_loss_exponent", "radio.fading", "radio.model", "radio.options", "radio.accounting",
    "federation.devices", "federation.participation", "federation.dropout", "own.dataset",
    "own.channel", "population.preset", "population.file", "population.classes",
    "population.correlations",
)  # fmt: skip

#: `radio.model` of the paper's channel, which `radio.channel` describes further.
BUILT_IN_CHANNEL = "outage"

Flat = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """One experiment with one or more seeds."""

    method: str
    name: str
    """The method as in the paper, with what distinguishes it from other groups of that method."""
    scene: str
    """The channel, and other conditions that differ between the scenes of a report."""
    setting: str
    """A key that is equal for groups that differ only in the method."""
    runs: tuple[RunRecord, ...]


def group(records: Iterable[RunRecord]) -> list[Group]:
    """Group runs over their seeds, in the order of their first run."""
    members: dict[str, list[RunRecord]] = {}
    flats: dict[str, Flat] = {}
    for record in records:
        flat = _compared(record)
        key = json.dumps(flat, sort_keys=True)
        flats[key] = flat
        members.setdefault(key, []).append(record)
    varied = _varied(list(flats.values()))
    return [
        Group(
            method=runs[0].experiment.method,
            name=_name(runs[0].experiment.method, flats[key], varied) + where,
            scene=_scene(runs[0], flats[key], varied),
            setting=json.dumps({**flats[key], "method": None}, sort_keys=True) + where,
            runs=tuple(sorted(runs, key=lambda run: run.experiment.seed)),
        )
        for key, same in members.items()
        for where, runs in _repetitions(same).items()
    ]


def _repetitions(runs: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """The runs by where they are, if a seed was run more than once; otherwise all together.

    The same seed once more is no independent result, so it must not count as another seed.
    """
    sets: dict[Path, list[RunRecord]] = {Path(): list(runs)}
    for up in (1, 0):  # by the folder around the runs, and if that is not enough, each alone
        if not any(map(_repeats_a_seed, sets.values())):
            break
        sets = {}
        for run in runs:
            sets.setdefault(Path(*run.path.absolute().parts[: -up or None]), []).append(run)
    if len(sets) == 1:
        return {"": list(runs)}
    top = os.path.commonpath(sets)
    return {f", in {place.relative_to(top)}": same for place, same in sets.items()}


def _repeats_a_seed(runs: Sequence[RunRecord]) -> bool:
    return len({run.experiment.seed for run in runs}) < len(runs)


def by_scene(groups: Sequence[Group]) -> list[Group]:
    """The same groups, ordered by scene."""
    scenes = list(dict.fromkeys(each.scene for each in groups))
    return sorted(groups, key=lambda each: scenes.index(each.scene))


def channel_words(record: RunRecord) -> str:
    """`poor channel`, the noise of an unnamed channel, or the class of the user's own."""
    radio = record.experiment.radio
    if radio.model == OWN:
        return f"own channel {record.own.get('channel', {}).get('name', 'without a name')}"
    if module_of(radio.model) is not None:
        return f"own channel {radio.model}"
    kind = "" if radio.model == BUILT_IN_CHANNEL else f"{radio.model} "
    if radio.channel in CHANNELS:
        return f"{radio.channel} {kind}channel"
    return f"{kind}channel with {radio.noise:g} dBm noise"


def _compared(record: RunRecord) -> Flat:
    values = flat(record.experiment)
    for key in _NOT_COMPARED:
        values.pop(key, None)
    if values.get("radio.split") not in ("per-device", "learned", "optimal-numeric"):
        values.pop("radio.split_objective", None)  # no other split reads it
    for key, reader in (("first_outage", "first-outage"), ("split_weights", "weighted")):
        if values.get("radio.split_objective") != reader:
            values.pop(f"radio.{key}", None)
    values["data.sha256"] = str(record.provenance.get("data_sha256", ""))[:12]
    for kind, entry in record.own.items():
        fingerprint = entry.get("fingerprint", "")
        readable = "(" in fingerprint
        values[f"own.{kind}"] = (
            fingerprint if readable else f"{entry.get('name')} {fingerprint[:12]}"
        )
    return values


def _varied(flats: Sequence[Flat]) -> list[str]:
    keys = dict.fromkeys(key for flat in flats for key in flat)
    return [key for key in keys if any(flat.get(key) != flats[0].get(key) for flat in flats[1:])]


def _name(method: str, flat: Flat, varied: list[str]) -> str:
    own = [k for k in varied if k != "method" and not k.startswith(_SCENE)]
    # a key that is not set is the method's default: the other groups state the difference
    given = [key for key in own if flat.get(key) is not None]
    words = ", ".join(f"{key} {_value(flat[key])}" for key in given)
    return f"{title(method)} ({words})" if words else title(method)


def _scene(record: RunRecord, flat: Flat, varied: list[str]) -> str:
    others = [key for key in varied if key.startswith(_SCENE) and key != "radio.noise_dbm"]
    words = [f"{key.removeprefix('data.')} {_value(flat.get(key))}" for key in others]
    return ", ".join([channel_words(record), *words])


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "/".join(map(_value, value))
    if isinstance(value, dict):  # the name of a device class suffices
        return str(value.get("name") or ", ".join(f"{k} {_value(v)}" for k, v in value.items()))
    return "unset" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
