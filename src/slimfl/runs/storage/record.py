"""The record of a round: the only definition of a line of metrics.jsonl, and its reader.

A run folder may come from a stranger. What passes here has exactly these types, finite numbers, the
devices, segments and widths of its experiment, and a size in proportion to them. Everything that
reads metrics relies on that.
"""

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from slimfl.errors import RequestError
from slimfl.experiment import Experiment
from slimfl.files import open_plain, read_regular

#: No sum, square or ratio of amounts up to this limit overflows.
MOST = 1e60
#: Maximum size of a line without its devices, and per device.
LINE_BYTES, DEVICE_BYTES = 1 << 16, 256
#: Maximum size of a metrics file, which takes about twice as much memory.
FILE_BYTES = 1 << 30
#: Maximum size of one number in partition.json, and of the file.
COUNT_BYTES, PARTITION_BYTES = 32, 1 << 26
#: Maximum number of classes: a label is one byte.
MOST_CLASSES = 256

Amount = Annotated[float, Field(ge=0, le=MOST)]
Number = Annotated[float, Field(ge=-MOST, le=MOST)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0, le=10**30)]
Tasks = Annotated[int, Field(ge=1, le=10**9)]
Reason = Annotated[str, Field(max_length=100, pattern=r"^[a-z0-9 -]+$")]


class _Part(BaseModel):
    # further keys are ignored: a later version may record more, and a stranger anything at all
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, allow_inf_nan=False)

    # a record can also be read like the JSON object that it is on disk

    def __getitem__(self, key: str) -> Any:
        """A field by its name in the file, as in `record["accuracy"]`."""
        try:
            return getattr(self, key)
        except AttributeError:
            raise KeyError(key) from None

    def __contains__(self, key: object) -> bool:
        return key in self.as_json()

    def keys(self) -> Iterable[str]:
        """The names of what was recorded."""
        return self.as_json().keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """What was recorded, as plain values."""
        return self.as_json().items()

    def as_json(self) -> dict[str, Any]:
        """Plain values, as in metrics.jsonl."""
        return self.model_dump(exclude_unset=True)


class Seconds(_Part):
    """Wall time of the two parts of a round."""

    training: Amount
    evaluation: Amount = 0.0


class PrivacySpent(_Part):
    """Differential privacy after a round; no epsilon without noise."""

    epsilon: Amount | None
    delta: Share


class RoundRecord(_Part):
    """One round. Lists of devices are by device id, lists of segments start with the narrowest."""

    round: Annotated[int, Field(ge=1, le=10**9)]
    accuracy: dict[str, Share]
    """By the name of the width; empty after rounds without an evaluation."""
    averaged_accuracy: dict[str, Share] | None = None
    """The accuracy of the mean of the last models; recorded with `federation.average_last`."""
    loss: dict[str, Number | None] = {}
    training_loss: dict[str, Number | None] = {}
    learning_rate: Amount | None = None
    devices: list[Count]
    """Devices whose update came in time."""
    dropped_out: list[Count]
    refused: list[Count]
    """Those of `devices` whose update was invalid and not merged."""
    clipped: list[Count] | None = None
    """Those of `devices` whose update changed too much and was bounded; absent if there are
    none."""
    gains: list[Amount] | None = None
    decoded: list[Count]
    """For each of `devices`, the number of segments that arrived."""
    delivered: list[Count]
    """For each segment, the number of devices whose copy was merged."""
    bits_sent: list[Amount]
    bits_decoded: list[Amount]
    bits_dropped: list[Amount]
    airtime_s: Amount
    energy_j: Amount
    paper_power_mw: Amount
    images: Count | None = None
    """Images that devices trained on; version 0.1 did not record it."""
    multiply_adds: Count | None = None
    paper_mflops: Amount
    duration_s: Amount | None = None
    """Virtual duration of the round; older versions recorded neither it nor the fields below."""
    clock_s: Amount | None = None
    """Virtual time since the run began."""
    finished_s: list[Amount] | None = None
    """For each of `devices`, when its upload ended since its task began; absent if all are
    equal."""
    compute_energy_j: Amount | None = None
    """Computing energy of all devices that began, by the presets of the run."""
    cut_off_energy_j: Amount | None = None
    """Transmit energy of uploads that were cut off; not part of `energy_j`."""
    drained: list[Count] | None = None
    """Devices with a battery that worked in this round."""
    battery_left_j: list[Amount] | None = None
    """For each of `drained`, the charge after the round."""
    empty: Count | None = None
    """Devices whose battery is empty after the round; absent where no device has one."""
    staleness: list[Amount | None] | None = None
    """Asynchronous: for each segment, the mean staleness of what was merged; None if nothing."""
    silent: list[Count] | None = None
    """Asynchronous: devices with tasks that ended without an update. Recorded, like the next two,
    if a device ended several tasks; `devices` then names it once per update."""
    silent_tasks: list[Tasks] | None = None
    """For each of `silent`, the number of such tasks."""
    missing_tasks: dict[Reason, Tasks] | None = None
    """The number of tasks by the reason why something of them is missing."""
    missing: dict[Reason, list[Count]] | None = None
    """Devices by the reason why something of theirs is missing; recorded if devices differ."""
    label_accuracy: dict[str, list[Share | None]] | None = None
    """By the name of the width, the accuracy on the test images of every label; recorded if devices
    differ."""
    privacy: PrivacySpent | None = None
    stopped_by: str | None = None
    """The callback that ended the run after this round, or `no device left`."""
    seconds: Seconds

    @property
    def asked(self) -> int:
        """How often a device was given work; with asynchronous devices, the tasks that ended."""
        if self.silent_tasks is not None:
            return len(self.devices) + sum(self.silent_tasks)
        return len(self.devices) + len(self.dropped_out)

    @property
    def missing_counts(self) -> dict[str, int]:
        """How often something was missing, by reason; empty if no reasons are recorded."""
        if self.missing_tasks is not None and self.missing is not None:
            return dict(self.missing_tasks)
        return {why: len(devices) for why, devices in (self.missing or {}).items()}

    def misfit(self, experiment: Experiment) -> str | None:
        """What is wrong in a record of this experiment; None if it fits."""
        widths = {f"{width}x" for width in experiment.model.widths}
        count, segments = experiment.federation.devices, len(widths)
        for key in _BY_WIDTH:
            if not (getattr(self, key) or {}).keys() <= widths:
                return f"{key} has a width that the experiment has not"
        for key, of in _LENGTHS.items():
            values = getattr(self, key)
            expected = segments if of == "segment" else len(getattr(self, of) or ())
            if values is not None and len(values) != expected:
                return f"{key} must have {expected} values, one per {of}"
        # asynchronous devices may upload twice before a merge
        heard = {*self.devices} if experiment.time.mode == "asynchronous" else self.devices
        different = {
            "devices and dropped_out": [*heard, *self.dropped_out],
            "drained": self.drained or [],
            "silent": self.silent or [],
            "missing": [device for each in (self.missing or {}).values() for device in each],
        }
        for key, devices in different.items():
            if len({*devices}) < len(devices) or max(devices, default=0) >= count:
                return f"{key} must be different numbers below {count}"
        for key in ("refused", "clipped"):
            if not {*(getattr(self, key) or ())} <= {*self.devices}:
                return f"{key} must be some of devices"
        if max(self.delivered) > len(self.devices) or (self.empty or 0) > count:
            return "delivered or empty counts more devices than there are"
        if max(self.decoded, default=0) > segments:
            return "decoded counts more segments than there are"
        return None


#: Fields whose keys are names of widths.
_BY_WIDTH = ("accuracy", "averaged_accuracy", "loss", "training_loss", "label_accuracy")

#: Lists with one value per segment, or for each value of another list.
_LENGTHS = {
    **dict.fromkeys(("delivered", "bits_sent", "bits_decoded", "bits_dropped"), "segment"),
    "staleness": "segment",
    **dict.fromkeys(("decoded", "gains", "finished_s"), "devices"),
    "drained": "battery_left_j",
    "battery_left_j": "drained",
    "silent": "silent_tasks",
    "silent_tasks": "silent",
}


class _Partition(_Part):
    class_counts: list[list[Annotated[int, Field(ge=0, le=10**12)]]]


class _Provenance(_Part):
    data_sha256: str
    versions: dict[str, str] = {}


#: Sections that every version has written into experiment.toml; `provenance` is the last.
SECTIONS = ("data", "model", "training", "radio", "federation", "provenance")


def check_whole(tree: dict[str, Any], path: Path) -> None:
    """Refuse the experiment.toml of a run if it is cut off or says what no run writes."""
    missing = [name for name in SECTIONS if not isinstance(tree.get(name), dict)]
    if missing:
        raise RequestError(
            f"{path} is cut off or damaged: it has no section {', '.join(missing)}; restore it "
            "from a copy, or start the run again in a new folder"
        )
    try:
        _Provenance.model_validate(tree["provenance"])
    except pydantic.ValidationError:
        raise RequestError(
            f"the section provenance of {path} is damaged: data_sha256 and versions must be text; "
            "restore it from a copy, or start the run again in a new folder"
        ) from None


@dataclass(frozen=True)
class IntactLines:
    """The lines of a metrics file up to the first wrong one."""

    lines: list[RoundRecord]
    size_bytes: int
    damage: str | None
    """What is wrong with the next line; None if there is none. An incomplete last line is what a
    kill leaves and does not count as damage."""


def read_intact(path: Path, experiment: Experiment) -> IntactLines:
    """The rounds in a metrics file; none if there is no file."""
    lines: list[RoundRecord] = []
    at = Position()
    try:
        for line, behind in read_on(path, experiment, at):
            lines.append(line)
            at = behind
    except DamageError as error:
        return IntactLines(lines, at.size_bytes, str(error))
    return IntactLines(lines, at.size_bytes, None)


@dataclass(frozen=True)
class Position:
    """How far a metrics file has been read."""

    lines: int = 0
    size_bytes: int = 0
    widths: frozenset[str] = frozenset()
    """Widths of the first evaluated round; later ones must have the same."""


class DamageError(Exception):
    """A line that no run writes; the message says which and why."""


def read_on(
    path: Path, experiment: Experiment, start: Position
) -> Iterator[tuple[RoundRecord, Position]]:
    """The rounds after a position, each with the position that follows it.

    Ends at the end of the file, at a line that is still being written, or with `DamageError`.
    """
    at = start
    try:
        for number, raw in enumerate(
            raw_lines(path, experiment, start.size_bytes), start.lines + 1
        ):
            try:
                line = _line(raw, number, experiment)
                widths = at.widths or frozenset(line.accuracy)
                if line.accuracy and line.accuracy.keys() != widths:
                    raise DamageError("has widths that differ from those of the lines before it")
            except DamageError as error:
                raise DamageError(f"line {number} of {path} {error}") from None
            at = Position(number, at.size_bytes + len(raw), widths)
            yield line, at
    except FileNotFoundError:
        return
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}; replace it") from None


def read_class_counts(path: Path, experiment: Experiment) -> list[list[int]]:
    """Samples [device][class] of a partition file; empty before the run has begun."""
    devices = experiment.federation.devices
    most = min(LINE_BYTES + devices * MOST_CLASSES * COUNT_BYTES, PARTITION_BYTES)
    try:
        counts = _Partition.model_validate_json(read_regular(path, most)).class_counts
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError, MemoryError):
        counts = []
    if len(counts) != devices or len({len(row) for row in counts}) != 1 or not counts[0]:
        raise RequestError(
            f"{path} is damaged: it must have one count per class for each of the {devices} "
            "devices; remove it"
        )
    return counts


def parse_lines(contents: bytes, experiment: Experiment) -> list[RoundRecord]:
    """All rounds of a metrics file that was read elsewhere; `DamageError` if one is wrong."""
    lines = []
    for number, raw in enumerate(io.BytesIO(contents), 1):
        try:
            lines.append(_line(raw, number, experiment))
        except DamageError as error:
            raise DamageError(f"line {number} {error}") from None
    return lines


def raw_lines(path: Path, experiment: Experiment, start: int = 0) -> Iterator[bytes]:
    """The complete lines of a file; a line that is too long is cut just above the limit."""
    most = _most_bytes(experiment)
    left = FILE_BYTES - start
    with open_plain(path, "rb") as file:
        file.seek(start)
        while (line := file.readline(most + 1)).endswith(b"\n") or len(line) > most:
            left -= len(line)
            if left < 0:
                raise RequestError(f"{path} has more than {FILE_BYTES:,} bytes; omit this run")
            yield line


def _most_bytes(experiment: Experiment) -> int:
    return LINE_BYTES + DEVICE_BYTES * experiment.federation.devices


def _line(raw: bytes, number: int, experiment: Experiment) -> RoundRecord:
    if len(raw) > _most_bytes(experiment):
        raise DamageError(f"has more than {_most_bytes(experiment):,} bytes")
    try:
        record = RoundRecord.model_validate_json(raw)
    except pydantic.ValidationError as error:
        raise DamageError(_problem(error)) from None
    except (ValueError, RecursionError):
        raise DamageError("is damaged: it is not a JSON object") from None
    if record.round != number:
        raise DamageError(f"is of round {record.round}, not {number}")
    misfit = record.misfit(experiment)
    if misfit is not None:
        raise DamageError(f"is damaged: {misfit}")
    return record


def _problem(error: pydantic.ValidationError) -> str:
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    missing = sorted(str(e["loc"][0]) for e in errors if e["type"] == "missing")
    if missing:
        return f"has no {', '.join(missing)}"
    first = errors[0]
    if first["type"] == "json_invalid" or not first["loc"]:
        return "is damaged: it is not a JSON object"
    message = first["msg"][:1].lower() + first["msg"][1:]
    return f"is damaged: {first['loc'][0]}: {message}"
