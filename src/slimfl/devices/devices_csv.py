"""`devices.csv`: one row per device with every value resolved, and its strict reader.

It lets another method run with the same devices. Numbers are written so that they are read back
exactly. A file may come from a stranger: every value has limits, and what is not understood is
refused with its line number.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import math
import re
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.devices.population import Population, width_indices
from slimfl.errors import RequestError
from slimfl.experiment.sections.population import LIMITS
from slimfl.files import open_regular, replacing

#: Numeric columns with their limits; infinity means mains power, or no computing time.
NUMBERS: dict[str, tuple[float, float]] = {**LIMITS, "angle_rad": (-7.0, 7.0)}
MAY_BE_INFINITE = ("macs_per_s", "battery_j")
NAMES = ("class", "energy")
#: In the order of the file; `samples` is for readers only, as the partition determines it again.
COLUMNS = (
    "device", "class", "max_width", "macs_per_s", "energy", "battery_j", "availability",
    "distance_m", "angle_rad", "power_dbm", "data_share", "samples",
)  # fmt: skip
OPTIONAL = ("samples",)

#: Number of rows read or written together.
CHUNK = 10_000
LONGEST_LINE = 4096
MOST_NAMES = 1000
_NAME = re.compile(r"[\w.+-]{1,64}")


def write_devices(path: Path, population: Population, widths: tuple[float, ...]) -> None:
    """Write the table atomically.

    Args:
        path: Of the file.
        population: All devices.
        widths: Those of the network, which the table names.
    """
    with replacing(path) as file:
        file.write((",".join(COLUMNS) + "\n").encode())
        for begin in range(0, len(population), CHUNK):
            part = population.take(slice(begin, begin + CHUNK))
            columns = [_written(part, name, widths) for name in COLUMNS]
            rows = (",".join(row) for row in zip(*columns, strict=True))
            file.write(("\n".join(rows) + "\n").encode())


def _written(part: Population, name: str, widths: tuple[float, ...]) -> list[str]:
    match name:
        case "device":
            return [str(value) for value in part.ids.tolist()]
        case "class":
            return [part.class_names[index] for index in part.device_class.tolist()]
        case "energy":
            return [part.energy_names[index] for index in part.energy.tolist()]
        case "max_width":
            return [repr(widths[index]) for index in part.max_width.tolist()]
        case "samples":
            return [str(value) for value in part.samples.tolist()]
        case _:
            return [repr(value) for value in getattr(part, name).tolist()]


def read_devices(path: Path, devices: int, widths: tuple[float, ...]) -> Population:
    """The population in a file; `RequestError` with one sentence if anything is wrong.

    Args:
        path: Of the file.
        devices: How many the experiment has.
        widths: Those of its network.
    """
    columns = {name: np.empty(devices) for name in NUMBERS}
    names: dict[str, NDArray[np.int16]] = {name: np.empty(devices, np.int16) for name in NAMES}
    known: dict[str, dict[str, int]] = {name: {} for name in NAMES}
    count = 0
    for chunk in _chunks(path):
        here = slice(count, count + len(chunk["device"]))
        if here.stop > devices:
            raise RequestError(
                f"{path} has more than {devices} devices; set federation.devices to their number"
            )
        _check_numbering(path, chunk["device"], count)
        for name, column in columns.items():
            column[here] = _numbers(path, name, chunk[name], count)
        for name, indices in names.items():
            indices[here] = _indices(path, name, chunk[name], known[name], count)
        count = here.stop
    if count < devices:
        raise RequestError(
            f"{path} has {count} devices and the experiment has {devices}; set federation.devices "
            f"to {count}"
        )
    max_width = width_indices(columns.pop("max_width"), widths, str(path))
    return Population(
        ids=np.arange(devices),
        samples=np.broadcast_to(np.int64(0), devices),
        max_width=max_width,
        device_class=names["class"],
        energy=names["energy"],
        class_names=tuple(known["class"]),
        energy_names=tuple(known["energy"]),
        **columns,
    )


def population_digest(population: Population) -> str:
    """A checksum of the devices, independent of their file and of the order of classes."""
    digest = hashlib.sha256()
    for name in population.columns():
        column = np.asarray(getattr(population, name))
        if name in ("device_class", "energy"):
            known = population.class_names if name == "device_class" else population.energy_names
            ordered = sorted({*(known[i] for i in np.unique(column).tolist())})
            digest.update(repr(ordered).encode())
            numbers = [ordered.index(each) if each in ordered else -1 for each in known]
            column = np.array(numbers, np.int16)[column]
        if name != "samples":
            digest.update(np.ascontiguousarray(column).data)
    return digest.hexdigest()


def _chunks(path: Path) -> Iterator[dict[str, list[str]]]:
    """The file in parts, as columns of text."""
    try:
        with open_regular(path) as raw, TextIOWrapper(raw, "utf-8", newline="") as text:
            lines = iter(lambda: text.readline(LONGEST_LINE + 1), "")
            rows = csv.reader(_short(path, lines), strict=True)
            header = next(rows, [])
            _check_header(path, header)
            number = 1
            while chunk := list(itertools.islice(rows, CHUNK)):
                for row in chunk:
                    number += 1
                    if len(row) != len(header):
                        raise RequestError(
                            f"line {number} of {path} has {len(row)} values for {len(header)} "
                            "columns; correct it"
                        )
                yield dict(zip(header, map(list, zip(*chunk, strict=True)), strict=True))
    except FileNotFoundError:
        raise RequestError(
            f"there is no file {path}; population.file takes a devices.csv, such as the one in a "
            "run folder with unequal devices"
        ) from None
    except OSError as error:
        raise RequestError(f"{path} cannot be read ({error.strerror}); give another file") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise RequestError(f"{path} is not a valid table of devices: {error}; correct it") from None


def _short(path: Path, lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if len(line) > LONGEST_LINE:
            raise RequestError(f"{path} has a line of more than {LONGEST_LINE} characters")
        yield line


def _check_header(path: Path, header: list[str]) -> None:
    missing = [name for name in COLUMNS if name not in header and name not in OPTIONAL]
    if missing:
        raise RequestError(f"{path} lacks the column {', '.join(missing)}; add it")
    unknown = [name for name in header if name not in COLUMNS]
    if unknown or len({*header}) < len(header):
        word = f"unknown column {unknown[0][:60]!r}" if unknown else "column twice"
        raise RequestError(f"{path} has an {word}; take it out".replace("an column", "a column"))


def _check_numbering(path: Path, ids: list[str], begin: int) -> None:
    expected = map(str, range(begin, begin + len(ids)))
    for line, (found, number) in enumerate(zip(ids, expected, strict=True), begin + 2):
        if found != number:
            raise RequestError(
                f"line {line} of {path} is for device {found[:20]!r} instead of device {number}; "
                "number the devices from 0"
            )


def _numbers(path: Path, name: str, texts: list[str], begin: int) -> Any:
    low, high = NUMBERS[name]
    try:
        values = np.array(texts, np.float64)
    except ValueError:
        values = np.array([_number(text) for text in texts])
    fine = (values >= low) & (values <= high)
    if name in MAY_BE_INFINITE:
        fine |= values == math.inf
    if not fine.all():
        row = int(np.argmin(fine))
        raise RequestError(
            f"line {begin + row + 2} of {path}: {name} is {texts[row][:40]!r}; give a number from "
            f"{low:g} to {high:g}"
        )
    return values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _indices(
    path: Path, name: str, texts: list[str], known: dict[str, int], begin: int
) -> list[int]:
    for text in {*texts} - known.keys():
        if not _NAME.fullmatch(text) or len(known) >= MOST_NAMES:
            raise RequestError(
                f"line {begin + texts.index(text) + 2} of {path}: {name} {text[:40]!r} is no name; "
                f"use letters, digits and . + - _, and at most {MOST_NAMES} names"
            )
    for text in texts:  # in the order of the file, not of a set
        known.setdefault(text, len(known))
    return [known[text] for text in texts]
