"""Asynchronous rounds: each device works at its own pace, and the server merges full buffers.

Buffered asynchronous merging (FedBuff, Nguyen et al. 2022), with one buffer per segment. A device
may deliver only segment 1, so each segment has its own buffer and version number. Once `size`
uploads have taken a place in a segment's buffer, the server merges what they delivered and
increments the version. The staleness of an update is the number of versions its segment has gone
through since the device began; the update's change is weighted by 1 / (1 + staleness)^exponent.

An upload that should have contained the segment takes a place even if the channel lost it: the
server assigned the slot and sees that it failed. So with identical devices, and as many places as
devices, the merges are those of synchronous rounds. With `count = "arrivals"`, only what arrived
takes a place.

A step is the time from one merge to the next; the metrics call it a round. The clock jumps from the
end of one upload to the end of the next, ordered by (time, device). All uploads that end at the
same moment are received before any device begins a new task. A device's n-th task uses the
randomness of round n, so identical devices do exactly what they would do in synchronous rounds. A
device trains when its task begins; the result is computed at once and kept until the upload ends,
so memory grows with the number of devices that work at the same time.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.devices.participation import cohort, round_half_up
from slimfl.errors import RequestError, RunError
from slimfl.methods import Arrival, Positions, RunningMean, State
from slimfl.nn import Vector
from slimfl.rng import generator
from slimfl.round import rounds
from slimfl.round.book import Book
from slimfl.round.clock import differing
from slimfl.round.reasons import BATTERY, CLIPPED, NO_ANSWER, NOBODY_LEFT, OFFLINE, REFUSED, outage
from slimfl.round.setting import Setting
from slimfl.round.stages import through
from slimfl.round.state import RunState
from slimfl.round.uploads import Plan, Upload, work_of_row, work_rows
from slimfl.runs.storage.record import RoundRecord

#: Uploads per buffer place after which a buffer that is still not full is given up on.
MOST_UPLOADS = 1000

#: Why a task delivers nothing; the empty string if it does deliver.
REASONS = ("", OFFLINE, NO_ANSWER, BATTERY, REFUSED, CLIPPED)

#: The whole and the real numbers of a flight in a checkpoint.
_WHOLE = ("device", "number", "step", "decoded", "attempts", "samples")
_REAL = (
    "ends_s", "finished_s", "gain", "noise_to_power", "power_dbm", "airtime_s", "energy_j",
    "compute_j", "used_j", "weight",
)  # fmt: skip
_OF_UPLOAD = (
    "device", "decoded", "attempts", "samples", "gain", "noise_to_power", "power_dbm", "airtime_s",
    "energy_j", "weight",
)  # fmt: skip


@dataclass(eq=False)
class Flight:
    """One device's task, from its beginning to the end of its upload, and a place in buffers."""

    upload: Upload
    """What the server gets; without parameters if nothing usable arrives."""
    number: int
    """The device's count of tasks, this one included; used as the round of its randomness."""
    step: int
    """Number of merges before it began, which identifies the model that it started from."""
    ends_s: float
    """End of the upload on the run's clock."""
    finished_s: float
    """End of the upload since the task began."""
    versions: tuple[int, ...]
    """Version of every segment in the model that the device started from."""
    compute_j: float
    used_j: float
    reason: str = ""
    """Why nothing usable arrives."""

    @property
    def device(self) -> int:
        """The device that works."""
        return self.upload.device

    @property
    def order(self) -> tuple[float, int]:
        """Sort key of events: time, then device."""
        return self.ends_s, self.device

    @property
    def trained(self) -> bool:
        """True if the device completed its work."""
        return self.reason in ("", REFUSED, CLIPPED)

    @property
    def arrived(self) -> tuple[int, ...]:
        """The segments that can be merged."""
        return () if self.upload.parameters is None else self.upload.arrived


class SegmentBuffers:
    """Uploads that wait to be merged, in order of arrival."""

    def __init__(self, segments: int, size: int, count: str = "uploads") -> None:
        self.size, self.count = size, count
        self.versions = np.zeros(segments, np.int64)
        self.places = np.zeros(segments, np.int64)
        """Number of places taken in each buffer."""
        self.waiting: list[tuple[Flight, tuple[int, ...]]] = []
        """Each upload with those of its segments that are not merged yet."""

    def add(self, flight: Flight) -> None:
        """Add an upload to the buffers of its segments."""
        taken = flight.upload.sent if self.count == "uploads" else flight.arrived
        self.places[list(taken)] += 1
        if flight.arrived:
            self.waiting.append((flight, flight.arrived))

    def due(self) -> tuple[int, ...]:
        """The segments whose buffer is full."""
        return tuple(np.flatnonzero(self.places >= self.size).tolist())

    def filled(self) -> tuple[int, ...]:
        """The segments whose buffer is not empty."""
        return tuple(np.flatnonzero(self.places > 0).tolist())

    def take(self, segments: Sequence[int]) -> list[tuple[Flight, tuple[int, ...]]]:
        """Empty some buffers; returns each upload with its segments in them."""
        taken, kept = [], []
        for flight, waiting in self.waiting:
            now = tuple(s for s in waiting if s in segments)
            later = tuple(s for s in waiting if s not in segments)
            if now:
                taken.append((flight, now))
            if later:
                kept.append((flight, later))
        self.waiting = kept
        self.places[list(segments)] = 0
        return taken

    def staleness(self, flight: Flight, segment: int) -> int:
        """How many versions a segment has advanced since the device began."""
        return int(self.versions[segment]) - flight.versions[segment]

    def mean_staleness(self, taken: Sequence[tuple[Flight, tuple[int, ...]]]) -> list[float | None]:
        """The mean staleness of what is merged per segment; None if nothing is."""
        found: list[list[int]] = [[] for _ in self.places]
        for flight, parts in taken:
            for segment in parts:
                found[segment].append(self.staleness(flight, segment))
        return [float(np.mean(each)) if each else None for each in found]


def discount(staleness: int, exponent: float) -> float:
    """The weight of a stale change.

    >>> discount(0, 0.5), discount(3, 0.5), discount(9, 0.0)
    (1.0, 0.5, 1.0)
    """
    return float((1.0 + staleness) ** -exponent)


def moved_to(
    model: Vector,
    began_with: Vector,
    parameters: Vector,
    parts: Sequence[tuple[Positions, int]],
    exponent: float,
) -> Vector:
    """The update's change, discounted by staleness, applied to the current model.

    What is not stale is returned bit for bit.

    Args:
        model: The current model.
        began_with: The model that the device started from.
        parameters: What arrived.
        parts: Positions with their staleness.
        exponent: Of the discount.
    """
    if all(staleness == 0 for _, staleness in parts):
        return parameters
    moved = parameters.copy()
    for where, staleness in parts:
        if staleness:
            change = parameters[where].astype(np.float64) - began_with[where]
            moved[where] = (model[where] + discount(staleness, exponent) * change).astype(
                np.float32
            )
    return moved


class Asynchronous:
    """The steps of an asynchronous run, and the work in progress between them."""

    def __init__(self, setting: Setting, state: RunState) -> None:
        self.setting, self.run = setting, state
        section, federation = setting.experiment.time, setting.experiment.federation
        asked = max(1, round_half_up(federation.participation * federation.devices))
        self.concurrency = section.concurrency or asked
        self.segments = len(setting.experiment.model.widths)
        self.buffers = SegmentBuffers(
            self.segments, section.buffer or self.concurrency, section.buffer_counts
        )
        self.flights: list[tuple[float, int, Flight]] = []
        """Heap ordered by (time, device); a device has at most one task at a time."""
        self.models: dict[int, Vector] = {}
        """Models that devices started from, by step."""
        self.begun = np.zeros(federation.devices, np.int64)
        """Number of tasks that each device has begun."""
        self.moments = 0
        """Number of times that idle devices were looked for; keys the random choice among them."""
        self._check(rounds.give_work(setting, state, 1, setting.population.ids[:1]))

    def step(self) -> RoundRecord:
        """Run until the next merge and return its record."""
        began_s, before_s = time.perf_counter(), self.run.clock_s
        ended: list[Flight] = []
        while True:
            if not self.flights or self.flights[0][0] > self.run.clock_s:
                self._begin()
            if not self.flights:
                return self._merge(self.buffers.filled(), ended, began_s, before_s, NOBODY_LEFT)
            *_, flight = heapq.heappop(self.flights)
            self._land(flight)
            ended.append(flight)
            due = self.buffers.due()
            if due:
                return self._merge(due, ended, began_s, before_s)
            if len(ended) > MOST_UPLOADS * (self.buffers.size + self.concurrency):
                raise RunError(
                    f"after {len(ended):,} uploads no segment's buffer is full; lower time.buffer, "
                    'or take time.buffer_counts = "uploads"'
                )

    def _land(self, flight: Flight) -> None:
        """An upload ends."""
        self.run.clock_s = flight.ends_s
        self.run.batteries.drain([flight.device], np.array([flight.used_j]))
        self.buffers.add(flight)

    def _begin(self) -> None:
        """Give tasks to idle devices until `concurrency` of them work."""
        idle = ~self.run.batteries.empty
        idle[[flight.device for *_, flight in self.flights]] = False
        candidates = np.flatnonzero(idle)
        free = self.concurrency - len(self.flights)
        self.moments += 1
        if free < len(candidates):
            random = generator(self.setting.experiment.seed, "participation", self.moments)
            candidates = random.permutation(candidates)
        chosen: dict[int, list[int]] = {}
        for device in candidates.tolist():
            if free <= 0:
                break
            self.begun[device] += 1
            number = int(self.begun[device])
            if rounds.give_work(self.setting, self.run, number, np.array([device])).unable:
                continue
            chosen.setdefault(number, []).append(device)
            free -= 1
        for number in sorted(chosen):
            self._give(number, np.array(sorted(chosen[number]), np.int64))

    def _check(self, plan: Plan) -> None:
        """Refuse parts that need common rounds."""
        before = self.run.channel.arrays
        if any(not np.array_equal(plan.channel_state[name], before[name]) for name in before):
            raise RequestError(
                f"{self.run.channel.words} changes its state from round to round, but asynchronous "
                "devices have no common rounds; choose another time.mode, or a channel without "
                "state"
            )
        if any(each.channels is not None for each in plan.work):
            raise RequestError(
                f"{self.run.method.words} trains different channels in every round, but "
                "asynchronous merging needs fixed segments; choose another time.mode"
            )

    def _give(self, number: int, ids: NDArray[np.int64]) -> None:
        """Begin task `number` of these devices."""
        whole = rounds.give_work(self.setting, self.run, number, ids)
        self._check(whole)
        reasons = self._silent(whole)
        began = [row for row, reason in enumerate(reasons) if not reason]
        plan = whole.take(np.array(began, np.int64))
        self.models[self.run.round] = self.run.model
        outcomes = rounds.train(self.setting, self.run, plan)
        uploads: dict[int, Upload] = {}
        for upload in through(self.setting.stages, plan, outcomes, self.setting.radio.measured):
            row = began[upload.row]
            if upload.answered:
                uploads[row], reasons[row] = upload, upload.missing
                if upload.where is None:
                    upload.parameters, upload.weight = None, 0.0
                upload.airtime_s, upload.slot_share = upload.airtime_s * upload.slot_share, 1.0
            else:
                reasons[row] = NO_ANSWER
        for row, reason in enumerate(reasons):
            flight = self._flight(number, whole, row, reason, uploads.get(row))
            heapq.heappush(self.flights, (*flight.order, flight))

    def _silent(self, plan: Plan) -> list[str]:
        """Per device, the reason why its task will deliver nothing; empty if it may deliver."""
        experiment = self.setting.experiment
        every = experiment.federation.model_copy(update={"participation": 1.0})
        who = cohort(every, experiment.seed, plan.round, self.setting.availability)
        silent = dict.fromkeys(who.dropped_out, NO_ANSWER) | dict.fromkeys(who.offline, OFFLINE)
        lasts = self.run.batteries.left_j[plan.costs.ids] >= plan.costs.needed_j
        return [
            silent.get(device, "" if enough else BATTERY)
            for device, enough in zip(plan.costs.ids.tolist(), lasts.tolist(), strict=True)
        ]

    def _flight(
        self, number: int, plan: Plan, row: int, reason: str, upload: Upload | None
    ) -> Flight:
        """A task; if it delivers nothing, only an empty battery makes it cost energy."""
        costs, device = plan.costs, int(plan.costs.ids[row])
        finished_s = float(costs.finished_s[row])
        compute_j, used_j = float(costs.compute_j[row]), float(costs.needed_j[row])
        if upload is None:
            upload = Upload(row, device, plan.work[row], plan.signals[row], NO_ANSWER, weight=0.0)
            left_j = float(self.run.batteries.left_j[device]) if reason == BATTERY else 0.0
            used_j, compute_j = left_j, min(compute_j, left_j)
            upload.energy_j = used_j - compute_j
            upload.noise_to_power = float(plan.links.noise_to_power[row])
        return Flight(
            upload,
            number,
            step=self.run.round,
            ends_s=self.run.clock_s + finished_s,
            finished_s=finished_s,
            versions=tuple(self.buffers.versions.tolist()),
            compute_j=compute_j,
            used_j=used_j,
            reason=reason,
        )

    def _merge(
        self,
        segments: Sequence[int],
        ended: list[Flight],
        began_s: float,
        before_s: float,
        stopped_by: str | None = None,
    ) -> RoundRecord:
        """Merge the buffers of these segments and return the record of the step."""
        setting, run = self.setting, self.run
        before, places = run.model, np.zeros(len(run.model))
        for segment in segments:
            places[setting.places((segment,), None)] = self.buffers.places[segment]
        taken = self.buffers.take(segments)
        staleness = self.buffers.mean_staleness(taken)
        absent = setting.experiment.federation.absent
        mean = RunningMean(before, asked=places, absent=absent)
        merge = rounds.begin_merge(setting, run, mean)
        for flight, parts in taken:
            merge.add(self._arrival(flight, parts))
        rounds.end_merge(setting, run, merge)
        for segment in range(self.segments):
            if segment not in segments:  # it must not change, whatever the method did
                where = setting.places((segment,), None)
                run.model[where] = before[where]
        self.buffers.versions[list(segments)] += 1
        run.round += 1
        if run.last_models is not None:
            run.last_models.add(run.round, run.model)
        self._forget()
        merged_s = time.perf_counter()
        book = self._book(ended, began_s)
        clock = {
            "duration_s": run.clock_s - before_s,
            "clock_s": run.clock_s,
            "compute_energy_j": fsum(each.compute_j for each in ended),
            "staleness": staleness,
            **self._optional_fields(ended),
            **task_fields(ended),
            **run.batteries.fields([each.device for each in ended]),
            **({"stopped_by": stopped_by} if stopped_by is not None else {}),
        }
        tested = rounds.scores(setting, run), rounds.averaged_scores(setting, run)
        return book.record(*tested, merged_s, clock)

    def _arrival(self, flight: Flight, parts: tuple[int, ...]) -> Arrival:
        """Some segments of an upload, moved to the current model."""
        places, parameters = self.setting.places, flight.upload.parameters
        assert parameters is not None
        stale = [(places((s,), None), self.buffers.staleness(flight, s)) for s in parts]
        exponent, began_with = self.setting.experiment.time.staleness_exponent, flight.step
        moved = moved_to(self.run.model, self.models[began_with], parameters, stale, exponent)
        device = self.setting.population.device(flight.device)
        return Arrival(device, moved, places(parts, None), flight.upload.weight)

    def _forget(self) -> None:
        """Drop models that no pending upload started from."""
        used = {flight.step for *_, flight in self.flights}
        used |= {flight.step for flight, _ in self.buffers.waiting}
        self.models = {step: model for step, model in self.models.items() if step in used}

    def _book(self, ended: list[Flight], began_s: float) -> Book:
        """The uploads that ended in this step."""
        heard = {each.device for each in ended if each.trained}
        silent = {each.device: each.reason for each in ended if each.device not in heard}
        book = Book(self.setting, self.run.round, began_s, sorted(silent), silent)
        for each in ended:
            if each.trained:
                book.note(each.upload)
        return book

    def _optional_fields(self, ended: list[Flight]) -> dict[str, Any]:
        finished_s = [each.finished_s for each in ended if each.trained]
        died_j = [each.upload.energy_j for each in ended if each.reason == BATTERY]
        return {
            **({"finished_s": finished_s} if differing(np.array(finished_s)) else {}),
            **({"cut_off_energy_j": fsum(died_j)} if died_j else {}),
        }

    def state(self) -> State:
        """What a checkpoint stores."""
        size, widths = len(self.run.model), self.segments
        at_work = [flight for *_, flight in sorted(self.flights, key=lambda one: one[:2])]
        waiting = [flight for flight, _ in self.buffers.waiting]
        parts = np.zeros((len(waiting), widths), np.bool_)
        for row, (_, segments) in enumerate(self.buffers.waiting):
            parts[row, list(segments)] = True
        steps = sorted(self.models)
        return {
            **{f"work/{name}": each for name, each in packed(at_work, size, widths).items()},
            **{f"waiting/{name}": each for name, each in packed(waiting, size, widths).items()},
            "parts": parts,
            "steps": np.array(steps, np.int64),
            "models": np.array([self.models[s] for s in steps], np.float32).reshape(-1, size),
            "begun": self.begun.copy(),
            "buffers": np.stack([self.buffers.versions, self.buffers.places]),
            "moments": np.array(self.moments, np.int64),
        }

    def restore(self, state: State) -> None:
        """Restore what `state` returned."""
        groups: dict[str, State] = {"work": {}, "waiting": {}}
        for name, array in state.items():
            group, _, key = name.partition("/")
            if key:
                groups[group][key] = array
        if state["begun"].shape != self.begun.shape or (
            state["models"].shape[1:] != self.run.model.shape
        ):
            raise ValueError("it is of other devices or another network")
        flights = self._unpacked(groups["work"])
        self.flights = [(*each.order, each) for each in flights]
        models = (np.array(model) for model in state["models"])
        self.models = dict(zip(state["steps"].tolist(), models, strict=True))
        self.begun = np.array(state["begun"])
        self.buffers.versions, self.buffers.places = np.array(state["buffers"])
        self.moments = int(state["moments"])
        waiting = self._unpacked(groups["waiting"])
        self.buffers.waiting = [
            (flight, tuple(np.flatnonzero(row).tolist()))
            for flight, row in zip(waiting, state["parts"], strict=True)
        ]
        if not {flight.step for flight in (*flights, *waiting)} <= self.models.keys():
            raise ValueError("a device began with a model that is not there")

    def _unpacked(self, arrays: State) -> list[Flight]:
        """The inverse of `packed`."""
        if np.isnan(arrays["real"]).any() or not np.isfinite(arrays["parameters"]).all():
            raise ValueError("a device at work has no time, or an update that is not finite")
        held, flights = iter(arrays["parameters"]), []
        columns = ("whole", "real", "reason", "versions", "losses", "images", "holds", "given")
        for row in zip(*(arrays[name] for name in columns), strict=True):
            whole, real, reason, versions, losses, images, holds, given = row
            values: dict[str, Any] = dict(zip(_WHOLE, whole.tolist(), strict=True))
            values |= dict(zip(_REAL, real.tolist(), strict=True))
            work = work_of_row(given)
            ratio = np.array([values["noise_to_power"]])
            [signal] = self.setting.signals.signals([work.messages], ratio)
            upload = Upload(-1, values.pop("device"), work, signal, REASONS[reason])
            for name in _OF_UPLOAD[1:]:
                setattr(upload, name, values.pop(name))
            upload.losses, upload.images_seen = losses, images
            upload.parameters = np.array(next(held)) if holds else None
            versions = tuple(versions.tolist())
            flights.append(Flight(upload, versions=versions, reason=REASONS[reason], **values))
        return flights


def task_fields(ended: Sequence[Flight]) -> dict[str, Any]:
    """What a record says of tasks, where lists that name a device once lose some.

    A device can end several tasks before a merge; empty if none did.
    """
    if len({each.device for each in ended}) == len(ended):
        return {}
    silent = Counter(each.device for each in ended if not each.trained)
    reasons = Counter(each.reason for each in ended if each.reason not in ("", CLIPPED))
    for each in ended:
        sent, got = each.upload.sent, each.upload.arrived
        if each.reason in ("", CLIPPED) and len(got) < len(sent):
            reasons[outage(sent[len(got)])] += 1
    devices = sorted(silent)
    return {
        "silent": devices,
        "silent_tasks": [silent[device] for device in devices],
        "missing_tasks": dict(sorted(reasons.items())),
    }


def packed(flights: list[Flight], parameters: int, widths: int) -> State:
    """Flights as arrays for a checkpoint, given the sizes of a model."""
    count = len(flights)
    losses, images = np.full((count, widths), np.nan), np.zeros((count, widths), np.int64)
    for row, each in enumerate(flights):
        if each.trained:
            losses[row], images[row] = each.upload.losses, each.upload.images_seen
    held = [each.upload.parameters for each in flights if each.upload.parameters is not None]

    def table(names: tuple[str, ...], kind: type) -> NDArray[Any]:
        rows = [
            [getattr(each.upload if name in _OF_UPLOAD else each, name) for name in names]
            for each in flights
        ]
        return np.array(rows, kind).reshape(count, len(names))

    return {
        "whole": table(_WHOLE, np.int64),
        "real": table(_REAL, np.float64),
        "reason": np.array([REASONS.index(each.reason) for each in flights], np.int64),
        "versions": np.array([each.versions for each in flights], np.int64).reshape(count, widths),
        "losses": losses,
        "images": images,
        "holds": np.array([each.upload.parameters is not None for each in flights], np.bool_),
        "parameters": np.array(held, np.float32).reshape(len(held), parameters),
        "given": work_rows([each.upload.work for each in flights], widths),
    }
