"""Runs as tables: one row per round or one row per run, for pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slimfl.experiment.short_names import short_name
from slimfl.extras import require
from slimfl.results.energy import sending_energy_j
from slimfl.results.records import RunRecord
from slimfl.round import RoundRecord

if TYPE_CHECKING:
    from pandas import DataFrame

#: A row of a table, by column.
Row = dict[str, Any]

#: Lists of devices, which a table shows by their length.
_COUNTED = ("devices", "dropped_out", "refused", "clipped")
#: Lists with one value per segment.
_SEGMENTS = ("delivered", "bits_sent", "bits_decoded", "bits_dropped")
#: Keys that describe how a run was computed, not what it is about.
_CIRCUMSTANCES = {"method", "seed", "engine", "device", "threads", "track", "callbacks", "data.dir"}


def round_rows(records: Sequence[RunRecord]) -> list[Row]:
    """One row per round, with the method, the seed and other settings that differ."""
    varied = varied_settings([record.experiment.model_dump(mode="json") for record in records])
    return [
        {**_which(record), **settings, **_round(line)}
        for record, settings in zip(records, varied, strict=True)
        for line in record.lines
    ]


def run_rows(records: Sequence[RunRecord]) -> list[Row]:
    """One row per run: its last accuracies and its costs."""
    varied = varied_settings([record.experiment.model_dump(mode="json") for record in records])
    rows = []
    for record, settings in zip(records, varied, strict=True):
        last = record.evaluated[-1].accuracy if record.evaluated else {}
        rows.append(
            {
                **_which(record),
                **settings,
                "rounds": len(record.lines),
                **{f"accuracy_{width}": value for width, value in last.items()},
                "airtime_s": sum(line.airtime_s for line in record.lines),
                "energy_j": sending_energy_j(record.lines),
            }
        )
    return rows


def frame(rows: Sequence[Row]) -> DataFrame:
    """Rows as a pandas data frame."""
    require("frames", "pandas")
    import pandas

    return pandas.DataFrame(list(rows))


def varied_settings(trees: Sequence[dict[str, Any]]) -> list[Row]:
    """For each experiment, the settings that differ between them.

    >>> varied_settings([{"data": {"alpha": 1.0}, "rounds": 3}, {"data": {"alpha": 0.1}}])
    [{'alpha': 1.0, 'rounds': 3}, {'alpha': 0.1, 'rounds': None}]
    """
    flats = [dict(_flat(tree)) for tree in trees]
    keys = dict.fromkeys(key for flat in flats for key in flat if key not in _CIRCUMSTANCES)
    varied = [key for key in keys if any(flat.get(key) != flats[0].get(key) for flat in flats)]
    if "radio.channel" in varied and all(flat["radio.channel"] != "custom" for flat in flats):
        varied.remove("radio.noise_dbm")  # the channel's name implies it
    return [{short_name(key): flat.get(key) for key in varied} for flat in flats]


def _which(record: RunRecord) -> Row:
    return {"method": record.experiment.method, "seed": record.experiment.seed}


def _round(line: RoundRecord) -> Row:
    """The numbers of one round; fields of later versions appear under their own name."""
    row: Row = {}
    for key, value in line.items():
        if key in _COUNTED:
            row[key] = len(value)
        elif key in _SEGMENTS:
            row |= {f"{key}_{number}": one for number, one in enumerate(value, 1)}
        elif isinstance(value, dict):
            row |= {f"{key}_{name}": one for name, one in value.items() if _is_plain(one)}
        elif _is_plain(value):
            row[key] = value
    return row


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _flat(tree: dict[str, Any], where: str = "") -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for key, value in tree.items():
        pairs += (
            _flat(value, f"{where}{key}.") if isinstance(value, dict) else [(where + key, value)]
        )
    return pairs
