"""A run by its devices: who was heard, why others were missing, and accuracy on their own data.

The accuracy on a device's data is the test accuracy per label, weighted by the labels that the
device holds. Only runs with unequal devices record what this needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from slimfl.results.records import RunRecord
from slimfl.results.rules import LAST
from slimfl.round import RoundRecord
from slimfl.round.reasons import NOT_ABLE

#: The share of devices that count as heard least.
LEAST = 0.25

#: The names of two groups of devices besides the classes.
EVERYBODY, LEAST_HEARD = "all devices", "heard least"

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DeviceSummary:
    """One run by its devices."""

    missing: dict[str, float]
    """By reason, as a share of all requests to devices."""
    accuracy: dict[str, dict[str, float]]
    """By group of devices (all, each class, heard least) and width: accuracy on the devices' own
    data, averaged over devices and the last evaluated rounds."""
    never_heard: int
    """Number of devices that were asked and never heard."""


def delivery(lines: Sequence[RoundRecord], devices: int) -> pd.DataFrame:
    """By device: how often it was `asked`, and `heard`, and the `share`.

    A device is heard when at least its first segment is merged. With asynchronous devices, every
    task counts. The share is NaN for devices that were never asked.
    """
    asked, heard = np.zeros(devices, np.int64), np.zeros(devices, np.int64)
    for line in lines:
        not_able = (line.missing or {}).get(NOT_ABLE, [])
        np.add.at(asked, [*line.devices, *not_able], 1)
        if line.silent is not None and line.silent_tasks is not None:
            silent, tasks = line.silent, np.array(line.silent_tasks, np.int64)
        else:
            silent, tasks = line.dropped_out, np.array(1)
        np.add.at(asked, silent, tasks)
        refused = {*line.refused}
        merged = [
            device
            for device, count in zip(line.devices, line.decoded, strict=True)
            if count and device not in refused
        ]
        np.add.at(heard, merged, 1)
    share = np.where(asked > 0, heard / np.maximum(asked, 1), np.nan)
    return pd.DataFrame({"asked": asked, "heard": heard, "share": share})


def device_summary(record: RunRecord) -> DeviceSummary | None:
    """The summary of a run; None if its rounds do not record who is missing and why."""
    lines = [line for line in record.lines if line.missing is not None]
    if not lines:
        return None
    told = delivery(lines, record.experiment.federation.devices)
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.missing_counts)
    total = max(int(told.asked.sum()), 1)
    return DeviceSummary(
        missing={why: counts[why] / total for why in sorted(counts)},
        accuracy=_accuracy(record, told),
        never_heard=int(((told.asked > 0) & (told.heard == 0)).sum()),
    )


def _accuracy(record: RunRecord, told: pd.DataFrame) -> dict[str, dict[str, float]]:
    """By group of devices and width."""
    evaluated = [line for line in record.lines if line.label_accuracy][-LAST:]
    by_width = accuracy_by_device(record, evaluated)
    if not by_width:
        return {}
    groups = _groups(record, told)
    found: dict[str, dict[str, float]] = {name: {} for name in groups}
    for width, on_own in by_width.items():
        for name, rows in groups.items():
            known = on_own[rows][~np.isnan(on_own[rows])]
            if len(known):
                found[name][width] = fmean(known.tolist())
    return found


def accuracy_by_device(record: RunRecord, lines: Sequence[RoundRecord]) -> dict[str, Floats]:
    """By width: the accuracy on every device's own data, averaged over these evaluated rounds.

    NaN for a device without labels that were tested; empty if the rounds do not record labels.
    """
    evaluated = [line.label_accuracy for line in lines if line.label_accuracy]
    if not evaluated or not record.class_counts:
        return {}
    held = np.asarray(record.class_counts, np.float64)
    found = {}
    for width in evaluated[-1]:
        by_label = np.array(
            [[np.nan if a is None else a for a in each[width]] for each in evaluated]
        )
        found[width] = _on_own_data(held, by_label.mean(axis=0))
    return found


def _on_own_data(held: Floats, by_label: Floats) -> Floats:
    """Every device's accuracy over the labels in the test set; NaN if it holds none of them."""
    labels = min(held.shape[1], len(by_label))
    tested = ~np.isnan(by_label[:labels])
    counts = held[:, :labels][:, tested]
    total = counts.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.where(
            total > 0, counts @ by_label[:labels][tested] / np.maximum(total, 1), np.nan
        )


def _groups(record: RunRecord, told: pd.DataFrame) -> dict[str, NDArray[np.int64]]:
    """Rows of the devices in each group: all, each class, and those heard least."""
    count = len(record.class_counts)
    groups = {EVERYBODY: np.arange(count)}
    devices = record.devices
    if devices is not None and len(devices.class_names) > 1:
        for index, name in enumerate(devices.class_names):
            members = np.flatnonzero(devices.device_class == index)
            if len(members):
                groups[f"class {name}"] = members
    few = max(1, round(LEAST * count))
    # devices that were never asked do not count
    order = np.lexsort((np.arange(count), told.share.fillna(np.inf)))
    groups[LEAST_HEARD] = np.sort(order[:few])
    return groups
