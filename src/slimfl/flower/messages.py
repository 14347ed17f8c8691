"""The messages between the server and a device in a round, as Flower records.

Every answer repeats its device, the round, and the digest of the parameters that the device started
from. So an answer to another order, or for another model, is recognised.
"""

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from io import BytesIO
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from numpy.typing import NDArray

from slimfl.data import Moments
from slimfl.engines.base import Task, Update
from slimfl.experiment import TrainingSection
from slimfl.nn import Vector
from slimfl.training import OptimiserState, Work, local_steps, state_shapes

ARRAYS, STATE, CONFIG = "arrays", "optimiser-state", "config"
PARAMETERS = "parameters"

#: The largest integer in an order, apart from the seed, and the largest number of images.
MOST = 10_000_000

#: The largest power gain that a device may report; the mean of a channel is about 1.
MOST_GAIN = 1e6

#: The largest loss that a device may report, as the mean over devices is in the metrics.
MOST_LOSS = 1e9

#: What a reason quotes of an answer at most, as the answer is the device's.
QUOTED = 500


class BadAnswerError(Exception):
    """An answer that cannot be used, and why."""


@dataclass(frozen=True, eq=False)
class Order:
    """What a device is asked to do."""

    experiment: str
    """The experiment as TOML."""
    round: int
    task: Task
    start: Vector
    moments: Moments
    """The server's normalisation of images, which all devices use."""
    data_sha256: str
    """The checksum of the distributed dataset."""
    state: OptimiserState
    """The device's state from its last round; empty in its first."""

    def record(self, start: ArrayRecord) -> RecordDict:
        """As a Flower record; `start` comes from `parameters_record`."""
        mean, deviation = self.moments
        config = {
            "experiment": self.experiment,
            "round": self.round,
            "device": self.task.device,
            "work": json.dumps(asdict(self.task.work)),
            "mean": mean.tolist(),
            "deviation": deviation.tolist(),
            "data-sha256": self.data_sha256,
        }
        return RecordDict(
            {
                ARRAYS: start,
                STATE: _arrays(self.state),
                CONFIG: ConfigRecord(config),
            }
        )

    @classmethod
    def read(cls, record: RecordDict) -> "Order":
        """The order in a record."""
        config = record.config_records[CONFIG]
        return cls(
            experiment=str(config["experiment"]),
            round=_whole(config["round"]),
            task=Task(
                _whole(config["device"]),
                _work(json.loads(str(config["work"]))),
            ),
            start=read_parameters(record.array_records[ARRAYS]),
            moments=(_floats32(config["mean"]), _floats32(config["deviation"])),
            data_sha256=str(config["data-sha256"]),
            state=_vectors(record.array_records[STATE]),
        )


@dataclass(frozen=True, eq=False)
class Answer:
    """What a device sends back."""

    round: int
    update: Update
    trained_from: str
    """The digest of the parameters that it started from."""
    state: OptimiserState

    def record(self) -> RecordDict:
        """As a Flower record."""
        update = self.update
        config = {
            "round": self.round,
            "device": update.device,
            "trained-from": self.trained_from,
            "samples": update.samples,
            "losses": update.losses.tolist(),
            "images-seen": update.images_seen.tolist(),
        }
        if update.gain is not None:
            config["gain"] = update.gain
        return RecordDict(
            {
                ARRAYS: parameters_record(update.parameters),
                STATE: _arrays(self.state),
                CONFIG: ConfigRecord(config),
            }
        )

    @classmethod
    def read(
        cls,
        record: RecordDict,
        order: Order,
        training: TrainingSection,
        width_count: int,
        samples: int | None = None,
    ) -> "Answer":
        """The answer to an order; raises `BadAnswerError` for anything else.

        `samples` is the number that the device holds; None if only the device knows it. With
        `federation.average = "samples"`, a false one would decide the mean.

        The receiver checks shape and finiteness of the parameters, as for every engine.
        """
        size = len(order.start)
        shapes = state_shapes(training, size)
        try:
            config = record.config_records[CONFIG]
            arrays, state = record.array_records[ARRAYS], record.array_records[STATE]
            if state.keys() not in (set(), shapes.keys()):
                raise ValueError("its optimiser's state is another optimiser's")
            update = Update(
                device=_whole(config["device"]),
                parameters=_vector(PARAMETERS, arrays[PARAMETERS]),
                samples=_whole(config["samples"]),
                losses=np.asarray(config["losses"], np.float64),
                images_seen=_counts(config["images-seen"]),
                gain=_gain(config["gain"]) if "gain" in config else None,
            )
            answer = cls(
                _whole(config["round"]), update, str(config["trained-from"]), _vectors(state)
            )
        # what a device sends can be anything, and so can the errors of those who read it
        except Exception as error:
            quoted = repr(error)[:QUOTED]
            raise BadAnswerError(f"its answer is not one of slimfl's: {quoted}") from None
        asked = order.task.device
        if update.device != asked:
            raise BadAnswerError(
                f"it answers as device {update.device}, and device {asked} was asked"
            )
        if answer.round != order.round:
            raise BadAnswerError(f"it answers for round {answer.round}")
        if answer.trained_from != digest(order.start):
            raise BadAnswerError("it trained another model than the one it was sent")
        held = update.samples
        if samples is not None and held != samples:
            raise BadAnswerError(f"it reports {held} samples, and it holds {samples}")
        # with data of its own, a device may report any number; an honest one refuses so much work
        if held < 1 or (samples is None and max(held, most_images(training, held)) > MOST):
            raise BadAnswerError(f"it reports {held} samples, which is impossible")
        if update.losses.shape != (width_count,) or not _possible(
            update, order.task.work, training, width_count
        ):
            raise BadAnswerError("its answer has impossible counts")
        trained = update.losses[~np.isnan(update.losses)]
        if not (np.abs(trained) <= MOST_LOSS).all():
            raise BadAnswerError(f"it reports a loss of {trained[np.abs(trained).argmax()]:g}")
        if not all(
            _possible_state(name, value, shapes[name]) for name, value in answer.state.items()
        ):
            raise BadAnswerError("its optimiser's state does not fit the model")
        return answer


def most_images(training: TrainingSection, samples: int, effort: float = 1.0) -> int:
    """Number of images in a round of a device, if every batch is full.

    Args:
        training: The experiment's.
        samples: Number of the device's samples.
        effort: The part of the configured steps that it takes.
    """
    return local_steps(training, samples, effort) * min(training.batch_size, samples)


def digest(parameters: Vector) -> str:
    """Identifies a model, and with it the run and the round."""
    return hashlib.sha256(np.ascontiguousarray(parameters).tobytes()).hexdigest()


def parameters_record(parameters: Vector) -> ArrayRecord:
    """A model as a Flower record."""
    return _arrays({PARAMETERS: parameters})


def read_parameters(record: ArrayRecord) -> Vector:
    """The inverse of `parameters_record`."""
    return _vectors(record)[PARAMETERS]


def _arrays(named: OptimiserState) -> ArrayRecord:
    return ArrayRecord({name: Array(np.asarray(value)) for name, value in named.items()})


def _vectors(record: ArrayRecord) -> OptimiserState:
    """Flower's arrays as float32; the serialisation is NumPy's own, without pickle."""
    return {name: _vector(name, array) for name, array in record.items()}


def _vector(name: str, array: Array) -> NDArray[np.float32]:
    """One of Flower's arrays; nothing is allocated for more numbers than there are in it."""
    body = BytesIO(array.data)
    version = np.lib.format.read_magic(body)
    if version != (1, 0):
        raise ValueError(f"{name} is in version {version} of NumPy's format, not 1.0")
    shape, _, kind = np.lib.format.read_array_header_1_0(body)
    if kind != np.float32:
        raise ValueError(f"{name} holds {kind}, not float32")
    if min(shape, default=0) < 0 or 4 * math.prod(shape) != len(array.data) - body.tell():
        raise ValueError(f"{name} does not hold as many numbers as its header says")
    return array.numpy()


def _floats32(values: object) -> Vector:
    return np.asarray(values, np.float32)


def _whole(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is not a whole number")
    return value


def _counts(values: object) -> NDArray[np.int64]:
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is not a list of whole numbers")
    return np.array([_whole(value) for value in values], np.int64)


def _work(work: dict[str, Any]) -> Work:
    """The work of an order, with the types of its fields."""
    weights, channels = work["weights"], work["channels"]
    return Work(
        tuple(_whole(width) for width in work["widths"]),
        step=work["step"],
        options=work["options"],
        visit=str(work["visit"]),
        weights=None if weights is None else tuple(float(weight) for weight in weights),
        channels=None if channels is None else (str(channels[0]), _whole(channels[1])),
        effort=float(work["effort"]),
    )


def _possible(update: Update, work: Work, training: TrainingSection, width_count: int) -> bool:
    """True if a device that trained these widths can have seen this many images at each.

    The order says how many steps there were. The widest takes part in every step, so no width saw
    more, and widths that were not asked for saw nothing. If one width is drawn per batch, any of
    those asked for may have seen the most.
    """
    seen = update.images_seen
    most = most_images(training, update.samples, work.effort)
    if seen.shape != (width_count,) or not ((seen >= 0) & (seen <= most)).all():
        return False
    asked = list(work.widths)
    widest_saw_most = work.visit == "one" or seen[asked[-1]] == seen.max()
    others = np.delete(seen, asked)
    return bool(widest_saw_most and not others.any() and 0 < work.images_trained_on(seen) <= most)


def _possible_state(name: str, value: NDArray[np.float32], shape: tuple[int, ...]) -> bool:
    """True for an array that the optimiser takes when it goes on, as it will in the next order."""
    if value.shape != shape or not np.isfinite(value).all():
        return False
    if name == "step":
        return bool(0 <= value <= 2**24 and value == np.floor(value))
    return name != "exp_avg_sq" or bool((value >= 0).all())


def _gain(value: object) -> float:
    if not isinstance(value, float) or not 0 <= value <= MOST_GAIN:
        raise ValueError(f"{value!r} is not a power gain between 0 and {MOST_GAIN:g}")
    return value
