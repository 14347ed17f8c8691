"""Asynchronous rounds: each device works at its own pace, and the server merges full buffers.

A step is the time from one merge to the next; the metrics call it a round. The clock jumps from the
end of one upload to the end of the next, ordered by (time, device). All uploads that end at the
same moment are received before any device begins a new task. A device's n-th task uses the
randomness of round n, so identical devices do exactly what they would do in synchronous rounds.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence
from math import fsum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slimfl.devices.participation import cohort, round_half_up
from slimfl.engines import Update
from slimfl.errors import RequestError, RunError
from slimfl.methods import Arrival, Arrivals
from slimfl.nn import Vector
from slimfl.radio import Links, Receptions, Signal
from slimfl.rng import generator
from slimfl.round.clock.buffers import Landed, SegmentBuffers, mean_staleness, moved_to
from slimfl.round.clock.ended_tasks import task_fields
from slimfl.round.clock.flights import Flight, packed, unpacked
from slimfl.round.clock.recorded import battery_fields, differing
from slimfl.round.clock.synchronous import no_round_time
from slimfl.round.clock.under_way import AT_WORK, WAITING, assignment, plain, under
from slimfl.round.plan import Plan
from slimfl.round.reasons import BATTERY, NO_ANSWER, OFFLINE, REFUSED
from slimfl.round.round_book import RoundBook
from slimfl.round.round_record import round_record
from slimfl.round.work import Work
from slimfl.runs.storage.record import RoundRecord

if TYPE_CHECKING:
    from slimfl.round.simulation import Simulation

#: Uploads per buffer place after which a buffer that is still not full is given up on.
MOST_UPLOADS = 1000

#: `stopped_by` of a run in which no device can work any more.
NOBODY_LEFT = "no device left"


class AsynchronousRounds:
    """The steps of a simulation, and the work in progress between them."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        experiment = simulation.experiment
        section, federation = experiment.time, experiment.federation
        asked = max(1, round_half_up(federation.participation * federation.devices))
        self.concurrency = section.concurrency or asked
        self.segments = len(experiment.model.widths)
        self.buffers = SegmentBuffers(
            self.segments, section.buffer or self.concurrency, section.buffer_counts
        )
        self.flights: list[tuple[float, int, Flight]] = []
        """Heap ordered by (time, device); a device has at most one task at a time."""
        self.waiting: dict[int, Flight] = {}
        """Uploads with segments still to be merged, by upload number."""
        self.models: dict[int, Vector] = {}
        """Models that devices started from, by step."""
        self.begun = np.zeros(federation.devices, np.int64)
        """Number of tasks that each device has begun."""
        self.moments = 0
        """Number of times that idle devices were looked for; keys the random choice among them."""
        self.landed = 0
        """Number of uploads that have ended."""
        self._check(simulation.work(1, simulation.population.ids[:1]))

    def step(self) -> RoundRecord:
        """Run until the next merge and return its record."""
        began_s, before_s = time.perf_counter(), self.simulation.clock_s
        ended: list[Flight] = []
        while True:
            if not self.flights or self.flights[0][0] > self.simulation.clock_s:
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
        simulation = self.simulation
        simulation.clock_s = flight.ends_s
        simulation.batteries.drain([flight.device], np.array([flight.used_j]))
        self.landed += 1
        landed = self._landed(flight, self.landed)
        self.buffers.add(landed)
        if landed.arrived:
            self.waiting[landed.key] = flight

    def _landed(self, flight: Flight, key: int) -> Landed:
        """The upload as the buffers need it."""
        signal = self._signal(flight)
        sent = signal.segments_decoded(len(signal.messages))
        arrived = () if flight.parameters is None else signal.segments_decoded(flight.decoded)
        return Landed(flight.device, sent, arrived, flight.versions, key)

    def _signal(self, flight: Flight) -> Signal:
        ratio = np.array([flight.noise_to_power])
        [signal] = self.simulation.signals.signals([flight.assignment.messages], ratio)
        return signal

    def _begin(self) -> None:
        """Give tasks to idle devices until `concurrency` of them work."""
        simulation = self.simulation
        idle = ~simulation.batteries.empty
        idle[[flight.device for *_, flight in self.flights]] = False
        candidates = np.flatnonzero(idle)
        room = self.concurrency - len(self.flights)
        self.moments += 1
        if room < len(candidates):
            random = generator(simulation.experiment.seed, "participation", self.moments)
            candidates = random.permutation(candidates)
        chosen: dict[int, list[int]] = {}
        for device in candidates.tolist():
            if room <= 0:
                break
            self.begun[device] += 1
            number = int(self.begun[device])
            if simulation.work(number, np.array([device])).unable:
                continue
            chosen.setdefault(number, []).append(device)
            room -= 1
        for number in sorted(chosen):
            self._give(number, np.array(sorted(chosen[number]), np.int64))

    def _check(self, work: Work) -> None:
        """Refuse parts that need common rounds."""
        simulation = self.simulation
        if any(
            not np.array_equal(work.channel_state[name], before)
            for name, before in simulation.channel_state.items()
        ):
            raise RequestError(
                f"{simulation.channel_words} changes its state from round to round, but "
                "asynchronous devices have no common rounds; choose another time.mode, or a "
                "channel without state"
            )
        if any(each.channels is not None for each in work.assignments):
            raise RequestError(
                f"method {simulation.method.name!r} trains different channels in every round, but "
                "asynchronous merging needs fixed segments; choose another time.mode"
            )

    def _give(self, number: int, ids: NDArray[np.int64]) -> None:
        """Begin task `number` of these devices."""
        simulation = self.simulation
        work = simulation.work(number, ids)
        self._check(work)
        reasons = self._silent(number, work)
        began = [row for row in range(len(work)) if not reasons[row]]
        plan = work.plan(number, began, [], no_round_time())
        self.models[simulation.round] = simulation.global_model
        flights: dict[int, Flight] = {}
        outcomes = simulation.outcomes(plan)
        for rows, got in simulation.receiver.received(plan, simulation.global_model, outcomes):
            place = {row: k for k, row in enumerate(got.updates)}
            for row in rows:
                if row not in place:
                    reasons[began[row]] = NO_ANSWER
                    continue
                update, k = got.updates[row], place[row]
                arrival = got.arrivals.get(row)
                wrong = dict.fromkeys(got.clipped, "clipped") | dict.fromkeys(got.refused, REFUSED)
                flights[began[row]] = Flight(
                    **self._task(number, work, began[row]),
                    reason=wrong.get(update.device, ""),
                    gain=float(got.links.gains[k]),
                    power_dbm=float(got.links.power_dbm[k]),
                    decoded=int(got.receptions.decoded[k]),
                    attempts=int(got.receptions.attempts[k]),
                    airtime_s=float(got.receptions.counted_s[k]),
                    energy_j=float(got.receptions.energy_j[k]),
                    samples=update.samples,
                    weight=arrival.weight if arrival is not None else 0.0,
                    losses=np.asarray(update.losses, np.float64),
                    images_seen=np.asarray(update.images_seen, np.int64),
                    parameters=arrival.parameters if arrival is not None else None,
                )
        for row in range(len(work)):
            flight = flights.get(row) or self._nothing(number, work, row, reasons[row])
            heapq.heappush(self.flights, (*flight.order, flight))

    def _silent(self, number: int, work: Work) -> list[str]:
        """Per device, the reason why its task will deliver nothing; empty if it may deliver."""
        simulation = self.simulation
        every = simulation.experiment.federation.model_copy(update={"participation": 1.0})
        who = cohort(every, simulation.experiment.seed, number, simulation.availability)
        silent = dict.fromkeys(who.dropped_out, NO_ANSWER) | dict.fromkeys(who.offline, OFFLINE)
        lasts = simulation.batteries.left_j[work.costs.ids] >= work.costs.needed_j
        return [
            silent.get(device, "" if enough else BATTERY)
            for device, enough in zip(work.costs.ids.tolist(), lasts.tolist(), strict=True)
        ]

    def _task(self, number: int, work: Work, row: int) -> dict[str, Any]:
        """The fields of a flight that describe its task."""
        costs = work.costs
        finished_s = float(costs.times.finished_s[row])
        return {
            "device": int(costs.ids[row]),
            "number": number,
            "assignment": work.assignments[row],
            "noise_to_power": float(work.links.noise_to_power[row]),
            "step": self.simulation.round,
            "ends_s": self.simulation.clock_s + finished_s,
            "finished_s": finished_s,
            "versions": tuple(self.buffers.versions.tolist()),
            "compute_j": float(costs.compute_j[row]),
            "used_j": float(costs.needed_j[row]),
        }

    def _nothing(self, number: int, work: Work, row: int, reason: str) -> Flight:
        """A task that delivers nothing; only an empty battery makes it cost energy."""
        task = self._task(number, work, row)
        left_j = float(self.simulation.batteries.left_j[task["device"]])
        died = reason == BATTERY
        task["used_j"] = left_j if died else 0.0
        task["compute_j"] = min(task["compute_j"], left_j) if died else 0.0
        energy_j = task["used_j"] - task["compute_j"] if died else 0.0
        return Flight(**task, reason=reason, energy_j=energy_j)

    def _merge(
        self,
        segments: Sequence[int],
        ended: list[Flight],
        began_s: float,
        before_s: float,
        stopped_by: str | None = None,
    ) -> RoundRecord:
        """Merge the buffers of these segments and return the record of the step."""
        simulation = self.simulation
        places = np.zeros(len(simulation.global_model))
        for segment in segments:
            places[simulation.receiver.positions((segment,), None)] = self.buffers.places[segment]
        taken = self.buffers.take(segments)
        staleness = mean_staleness(self.buffers, taken, self.segments)
        before = simulation.global_model
        arrivals = Arrivals(
            before,
            self._arrivals(taken),
            asked=places,
            absent=simulation.experiment.federation.absent,
        )
        simulation.merge(arrivals)
        others = [s for s in range(self.segments) if s not in segments]
        for segment in others:  # other segments must not change, whatever the method did
            where = simulation.receiver.positions((segment,), None)
            simulation.global_model[where] = before[where]
        self.buffers.versions[list(segments)] += 1
        simulation.round += 1
        simulation.last_models.add(simulation.round, simulation.global_model)
        self._forget()
        trained_s = time.perf_counter()
        plan, book = self._booked(ended, began_s)
        clock = {
            "duration_s": simulation.clock_s - before_s,
            "clock_s": simulation.clock_s,
            "compute_energy_j": fsum(each.compute_j for each in ended),
            "staleness": staleness,
            **self._optional_fields(ended),
            **task_fields(ended, _sent(plan), book.arrived),
            **battery_fields([each.device for each in ended], simulation.batteries),
        }
        scores = simulation.scores(plan.round), simulation.averaged_scores(plan.round)
        record = round_record(simulation, plan, book, *scores, trained_s, clock)
        return (
            record if stopped_by is None else record.model_copy(update={"stopped_by": stopped_by})
        )

    def _arrivals(self, taken: Sequence[tuple[Landed, tuple[int, ...]]]) -> Iterator[Arrival]:
        simulation, exponent = self.simulation, self.simulation.experiment.time.staleness_exponent
        model, positions = simulation.global_model, simulation.receiver.positions
        for landed, parts in taken:
            flight = self.waiting[landed.key]
            assert flight.parameters is not None
            stale = [(positions((s,), None), self.buffers.staleness(landed, s)) for s in parts]
            began_with = self.models[flight.step]
            parameters = moved_to(model, began_with, flight.parameters, stale, exponent)
            device = simulation.population.device(flight.device)
            yield Arrival(device, parameters, positions(parts, None), flight.weight)

    def _forget(self) -> None:
        """Drop merged uploads and models that no pending upload started from."""
        kept = {landed.key for landed, _ in self.buffers.waiting}
        self.waiting = {key: flight for key, flight in self.waiting.items() if key in kept}
        used = {flight.step for *_, flight in self.flights}
        used |= {flight.step for flight in self.waiting.values()}
        self.models = {step: model for step, model in self.models.items() if step in used}

    def _booked(self, ended: list[Flight], began_s: float) -> tuple[Plan, RoundBook]:
        """The uploads that ended in this step, as the plan and book of a round."""
        simulation = self.simulation
        came = [each for each in ended if each.trained]
        ids = np.array([each.device for each in came], np.int64)

        def column(name: str, kind: Any = np.float64) -> NDArray[Any]:
            return np.array([getattr(each, name) for each in came], kind)

        links = Links(
            simulation.experiment.seed,
            simulation.round,
            ids,
            column("gain"),
            column("noise_to_power"),
            column("power_dbm"),
        )
        silent = [each.device for each in ended if not each.trained]
        heard = {*ids.tolist()}
        plan = Plan(
            simulation.round,
            simulation.population.take(ids),
            [each.assignment for each in came],
            [self._signal(each) for each in came],
            links,
            simulation.channel_state,
            sorted({*silent} - heard),
            no_round_time(),
            {each.device: each.reason for each in ended if each.device not in heard},
            began_s,
        )
        book = RoundBook(plan, self.segments)
        receptions = Receptions(
            column("decoded", np.int64),
            column("attempts", np.int64),
            column("airtime_s"),
            column("energy_j"),
        )
        updates = [
            Update(
                each.device, np.zeros(0, np.float32), each.samples, each.losses, each.images_seen
            )
            for each in came
        ]
        book.receive(range(len(came)), updates, links, receptions)
        book.refused = sorted({each.device for each in came if each.reason == REFUSED})
        book.clipped = sorted({each.device for each in came if each.reason == "clipped"})
        return plan, book

    def _optional_fields(self, ended: list[Flight]) -> dict[str, Any]:
        finished_s = [each.finished_s for each in ended if each.trained]
        died_j = [each.energy_j for each in ended if each.reason == BATTERY]
        return {
            **({"finished_s": finished_s} if differing(np.array(finished_s)) else {}),
            **({"cut_off_energy_j": fsum(died_j)} if died_j else {}),
        }

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """What a checkpoint stores: arrays and plain values."""
        size, widths = len(self.simulation.global_model), self.segments
        at_work = [flight for *_, flight in sorted(self.flights, key=lambda one: one[:2])]
        waiting = [self.waiting[landed.key] for landed, _ in self.buffers.waiting]
        parts = np.zeros((len(waiting), widths), np.bool_)
        for row, (_, segments) in enumerate(self.buffers.waiting):
            parts[row, list(segments)] = True
        steps = sorted(self.models)
        arrays = {
            **{AT_WORK + name: each for name, each in packed(at_work, size, widths).items()},
            **{WAITING + name: each for name, each in packed(waiting, size, widths).items()},
            "parts": parts,
            "steps": np.array(steps, np.int64),
            "models": np.array([self.models[s] for s in steps], np.float32).reshape(-1, size),
            "begun": self.begun.copy(),
            "buffers": np.stack([self.buffers.versions, self.buffers.places]),
        }
        arrays = {f"flight/{name}": each for name, each in arrays.items()}
        return arrays, {
            "moments": self.moments,
            "landed": self.landed,
            "assigned": [plain(each.assignment) for each in (*at_work, *waiting)],
        }

    def restore(self, arrays: dict[str, NDArray[Any]], state: dict[str, Any]) -> None:
        """Restore what `state` returned, once `problem` has found nothing wrong."""
        assigned = [assignment(*each) for each in state["assigned"]]
        flights = unpacked(under(AT_WORK, arrays), assigned)
        self.flights = [(*each.order, each) for each in flights]
        self.models = dict(
            zip(
                arrays["steps"].tolist(),
                (np.array(model) for model in arrays["models"]),
                strict=True,
            )
        )
        self.begun = np.array(arrays["begun"])
        self.buffers.versions, self.buffers.places = np.array(arrays["buffers"])
        self.moments, self.landed = state["moments"], state["landed"]
        self.waiting, self.buffers.waiting = {}, []
        waiting = unpacked(under(WAITING, arrays), assigned[len(flights) :])
        for key, (flight, row) in enumerate(zip(waiting, arrays["parts"], strict=True)):
            # below the numbers of future uploads, in the same order
            number = key - len(waiting)
            self.waiting[number] = flight
            landed = self._landed(flight, number)
            self.buffers.waiting.append((landed, tuple(np.flatnonzero(row).tolist())))


def _sent(plan: Plan) -> list[tuple[int, ...]]:
    """The segments that each device of a plan sends."""
    return [signal.segments_decoded(len(signal.messages)) for signal in plan.signals]
