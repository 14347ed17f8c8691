"""Runs as pandas frames: one row per round, or one row per run.

Values per width are columns such as `accuracy_0.5x`, values per segment `delivered_1` and so on.
Lists of devices become their lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from slimfl.experiment.identity import flat
from slimfl.experiment.short_names import short_name
from slimfl.results.records import RunRecord
from slimfl.results.rules import round_energy_j, sending_energy_j
from slimfl.round import RoundRecord

#: A row of a table, by column.
Row = dict[str, Any]

#: Lists of devices, which a table shows by their length.
_COUNTED = ("devices", "dropped_out", "refused", "clipped")
#: Lists with one value per segment.
_SEGMENTS = ("delivered", "bits_sent", "bits_decoded", "bits_dropped")
#: Keys that describe how a run was computed, not what it is about.
_CIRCUMSTANCES = {"method", "seed", "engine", "device", "threads", "track", "callbacks", "data.dir"}


def round_rows(records: Sequence[RunRecord]) -> pd.DataFrame:
    """One row per round, with the method, the seed and other settings that differ."""
    parts = []
    for record, settings in zip(records, varied_settings(records), strict=True):
        part = recorded(record.lines)
        for place, (key, value) in enumerate((_which(record) | settings).items()):
            part.insert(place, key, [value] * len(part))
        parts.append(part)
    filled = [part for part in parts if len(part)] or parts
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame()


def run_rows(records: Sequence[RunRecord]) -> list[Row]:
    """One row per run: its last accuracies and its costs."""
    return [
        {
            **_which(record),
            **settings,
            "rounds": len(record.lines),
            **{
                f"accuracy_{width}": value
                for line in record.evaluated[-1:]
                for width, value in line.accuracy.items()
            },
            "airtime_s": sum(line.airtime_s for line in record.lines),
            "energy_j": sending_energy_j(record.lines),
        }
        for record, settings in zip(records, varied_settings(records), strict=True)
    ]


def varied_settings(records: Sequence[RunRecord]) -> list[Row]:
    """For each run, the settings of its experiment that differ between the runs."""
    flats = [flat(record.experiment) for record in records]
    keys = dict.fromkeys(key for flat in flats for key in flat if key not in _CIRCUMSTANCES)
    varied = [key for key in keys if any(flat.get(key) != flats[0].get(key) for flat in flats)]
    if "radio.channel" in varied and all(flat["radio.channel"] != "custom" for flat in flats):
        varied.remove("radio.noise_dbm")  # the channel's name implies it
    return [{short_name(key): flat.get(key) for key in varied} for flat in flats]


def recorded(lines: Sequence[RoundRecord]) -> pd.DataFrame:
    """What was recorded of some rounds, as it is named in metrics.jsonl."""
    seen = set().union(*(line.model_fields_set for line in lines))
    columns: dict[str, list[Any]] = {}
    for key in (key for key in RoundRecord.model_fields if key in seen):
        values = [getattr(line, key) for line in lines]
        known = next((value for value in values if value is not None), None)
        if key in _COUNTED:
            columns[key] = [len(value) for value in values]
        elif key in _SEGMENTS:
            for segment in range(len(known or ())):
                columns[f"{key}_{segment + 1}"] = [value[segment] for value in values]
        elif hasattr(known, "keys"):
            parts = [dict(value.items()) if value else {} for value in values]
            for name in dict.fromkeys(name for part in parts for name in part):
                inner = [part.get(name) for part in parts]
                if all(map(_is_plain, inner)):
                    columns[f"{key}_{name}"] = inner
        elif known is not None and _is_plain(known):
            columns[key] = values
    return pd.DataFrame(columns)


def rounds_of(record: RunRecord) -> pd.DataFrame:
    """The rounds of a run by their number, with the quantities that every table counts alike.

    `sending_j` includes uploads that were cut off, `energy_j` here also computing where it was
    counted; `asked` is how often a device was asked; `clock_s` is there for older versions, too.
    """
    lines = record.lines
    table = recorded(lines)
    table["sending_j"] = [round_energy_j(line, computing=False) for line in lines]
    table["energy_j"] = [round_energy_j(line) for line in lines]
    table["sent_mb"] = [sum(line.bits_sent) / 8e6 for line in lines]
    table["asked"] = [line.asked for line in lines]
    # Older versions recorded no clock. Their devices computed in no time and sent in parallel for
    # equally long, so a round lasted as long as one upload.
    lasted = pd.Series([line.airtime_s / max(len(line.devices), 1) for line in lines], dtype=float)
    clock = table.get("clock_s", lasted.cumsum())
    table["clock_s"] = clock.fillna(lasted.cumsum())
    table.index = pd.Index([line.round for line in lines], name="round", dtype="int64")
    return table


def _which(record: RunRecord) -> Row:
    return {"method": record.experiment.method, "seed": record.experiment.seed}


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
