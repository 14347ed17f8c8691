"""The round loop, written once for every method, engine and channel.

A round follows the data: who trains, what each device learns, what arrives at the server, what is
merged, what is recorded.
"""

import logging
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from slimfl.devices import Device, Population, widest_widths
from slimfl.devices.participation import cohort
from slimfl.engines import Outcome, Score, Task, Update
from slimfl.errors import RequestError, RunError
from slimfl.experiment import Experiment
from slimfl.methods import Arrivals, Assignment, State
from slimfl.nn import Vector, flatten, load_flat
from slimfl.radio import GainBelief, Links, heard, noise_to_power
from slimfl.rng import generator
from slimfl.round.asynchronous import NOBODY_LEFT, AsynchronousRounds
from slimfl.round.clock.batteries import Batteries
from slimfl.round.clock.recorded import clock_fields
from slimfl.round.clock.synchronous import asked_share, round_time
from slimfl.round.clock.task_costs import task_costs
from slimfl.round.filters import on_sums
from slimfl.round.last_models import LastModels
from slimfl.round.last_segments import LastSegments, memory_warning
from slimfl.round.plan import Plan
from slimfl.round.reasons import BATTERY, NO_ANSWER, NO_MODEL, NOT_ABLE, OFFLINE
from slimfl.round.receiver import Receiver
from slimfl.round.round_book import RoundBook
from slimfl.round.round_record import round_record
from slimfl.round.setting import Setting
from slimfl.round.work import Work
from slimfl.runs.storage.checkpoint import Checkpoint, device_files_state
from slimfl.runs.storage.fitting import LAST_SEGMENTS, check_fits, made_with
from slimfl.runs.storage.part_state import checked_state, shapes
from slimfl.runs.storage.record import RoundRecord
from slimfl.runs.storage.state_space import space_warning, taking_part

log = logging.getLogger(__name__)


class Simulation(Setting):
    """A federation in this process: a setting, and the state that changes from round to round."""

    def __init__(self, experiment: Experiment, **given: Any) -> None:
        super().__init__(experiment, **given)
        self.round = 0
        self.clock_s = 0.0
        """Virtual time since the run began."""
        self.batteries = Batteries(self.population.battery_j)
        self.global_model: Vector = flatten(self.network)
        self.receiver = Receiver(
            self.experiment, self.channel, self.network, self.segments, self.filters
        )
        self.method_state = checked_state(
            self._method_words, self.method.initial_state(self.global_model)
        )
        self.channel_state = checked_state(
            self.channel_words, self.channel.start(self.population, experiment.seed)
        )
        self.belief: GainBelief | None = None
        if experiment.radio.split == "learned":
            radio = experiment.radio
            self.belief = GainBelief(
                len(self.population), noise_to_power(radio), radio.split_drift_db
            )
        self.last_models = LastModels(experiment.federation.average_last, len(self.global_model))
        stale = experiment.federation.absent == "stale"
        self.last_segments = LastSegments(len(self.global_model)) if stale else None
        self.trains_on = experiment.radio.downlink_missed == "own-model"
        if self.trains_on:
            self.engine.states.first_model = self.global_model.copy()
        asynchronous = experiment.time.mode == "asynchronous"
        self.asynchronous = AsynchronousRounds(self) if asynchronous else None

    def checkpoint(self) -> Checkpoint:
        """The state that changes from round to round."""
        tensors, state = {"global": self.global_model}, made_with(*self._made_with)
        tensors |= self._kept
        if self.last_segments is not None:
            last = self.last_segments.state()
            tensors |= {f"{LAST_SEGMENTS}{name}": value for name, value in last.items()}
        state["clock_s"] = self.clock_s
        if self.asynchronous is not None:
            arrays, values = self.asynchronous.state()
            tensors |= arrays
            state["asynchronous"] = values
        if self.privacy is not None:
            state |= self.privacy.state()
        states = self.engine.states
        if states.folder is None or states.small:
            tensors |= {f"device/{k}": v for k, v in self.engine.device_states().items()}
        else:
            state |= device_files_state(states.save())
        return Checkpoint(self.round, tensors, state)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint; one of another run is refused."""
        check_fits(checkpoint, *self._made_with, len(self.global_model), shapes(self._kept))
        tensors = dict(checkpoint.tensors)
        self.round, self.global_model = checkpoint.round, tensors.pop("global")
        self.method_state = _taken(tensors, "method/")
        self.channel_state = _taken(tensors, "channel/")
        self.clock_s = checkpoint.state.get("clock_s", 0.0)
        self.batteries.restore(_taken(tensors, "clock/"))
        if self.belief is not None:
            self.belief.restore(_taken(tensors, "belief/"))
        self.last_models.restore(_taken(tensors, "average/"))
        if self.last_segments is not None:
            self.last_segments.restore(_taken(tensors, LAST_SEGMENTS))
        if self.asynchronous is not None:
            under_way = _taken(tensors, "flight/")
            self.asynchronous.restore(under_way, checkpoint.state["asynchronous"])
        if self.privacy is not None:
            self.privacy.restore(checkpoint.state)
        if checkpoint.device_files:
            self.engine.states.reopen(checkpoint.device_files)
        else:
            self.engine.restore_device_states(
                {key.removeprefix("device/"): value for key, value in tensors.items()}
            )

    @property
    def _kept(self) -> State:
        """What method, channel, batteries, belief and averaging keep, by names in a checkpoint."""
        believed = self.belief.state() if self.belief is not None else {}
        return {
            **{f"method/{name}": value for name, value in self.method_state.items()},
            **{f"channel/{name}": value for name, value in self.channel_state.items()},
            **{f"clock/{name}": value for name, value in self.batteries.state().items()},
            **{f"belief/{name}": value for name, value in believed.items()},
            **{f"average/{name}": value for name, value in self.last_models.state().items()},
        }

    @property
    def _method_words(self) -> str:
        return f"method {self.method.name!r}"

    @property
    def channel_words(self) -> str:
        """The channel's name for messages."""
        return f"channel {type(self.channel).__name__}"

    @property
    def _made_with(self) -> tuple[Experiment, str]:
        return self.experiment, self.dataset.checksum

    def keep_states_in(self, folder: Path | None) -> None:
        """Set the folder for the states of many devices; None is the folder for temporary files."""
        self.engine.states.folder = folder
        parameters = len(self.global_model)
        warnings = [*self.oddities, space_warning(self.experiment, parameters, folder)]
        if self.last_segments is not None:
            warnings.append(memory_warning(parameters, taking_part(self.experiment)))
        for warning in filter(None, warnings):
            log.warning("%s", warning)

    def trained_network(self) -> nn.Module:
        """The network, loaded with the global model."""
        load_flat(self.network, self.global_model)
        return self.network

    def step(self) -> RoundRecord:
        """Run one round and return its record."""
        if self.asynchronous is not None:
            return self.asynchronous.step()
        plan = self.plan()
        return self.collect(plan, self.outcomes(plan))

    def plan(self) -> Plan:
        """Plan the next round: who takes part, what devices train and send, over which link."""
        number = self.round + 1
        share = asked_share(self.experiment)
        section = self.experiment.federation.model_copy(update={"participation": share})
        who = cohort(section, self.experiment.seed, number, self.availability)
        active = np.array(who.active, np.int64)
        is_empty = self.batteries.empty
        gone = is_empty[active]
        listening = active[~gone]
        hears = heard(
            self.experiment.radio,
            self.channel,
            self.channel_state,
            number,
            self.population.take(listening),
            self.experiment.seed,
        )
        own_start = frozenset(listening[~hears].tolist() if self.trains_on else ())
        deaf = [] if self.trains_on else listening[~hears].tolist()
        work = self.work(number, listening if self.trains_on else listening[hears])
        timing = round_time(self.experiment, work.costs, self.batteries)
        empty = active[gone].tolist()
        reasons = dict.fromkeys(who.dropped_out, NO_ANSWER) | dict.fromkeys(who.offline, OFFLINE)
        reasons |= {device: BATTERY for device in who.dropped_out if is_empty[device]}
        reasons |= dict.fromkeys(work.unable, NOT_ABLE) | dict.fromkeys(empty, BATTERY)
        reasons |= timing.cut_off | dict.fromkeys(deaf, NO_MODEL)
        absent = sorted([*who.dropped_out, *empty, *deaf, *timing.cut_off])
        rows = np.flatnonzero(timing.in_time).tolist()
        return replace(work.plan(number, rows, absent, timing, reasons), own_start=own_start)

    def work(self, number: int, ids: NDArray[np.int64]) -> Work:
        """What the method assigns to these devices in a round, and what that costs them."""
        asked = self._limited(self.population.take(ids), number)
        assigned = [self._assign(device, number) for device in asked]
        rows = [row for row, assignment in enumerate(assigned) if assignment is not None]
        devices = asked if len(rows) == len(asked) else asked.take(rows)
        assignments = [assignment for assignment in assigned if assignment is not None]
        seed = self.experiment.seed
        links, state = self.channel.links(self.channel_state, number, devices, seed)
        state = checked_state(self.channel_words, state, self.channel_state)
        messages = (each.messages for each in assignments)
        signals = self.signals.signals(messages, self._known_noise_to_power(devices, links))
        links = links.sent(signals)
        costs = task_costs(self, number, devices, assignments, signals, links)
        unable = sorted({*asked.ids.tolist()} - {*devices.ids.tolist()})
        return Work(devices, assignments, signals, links, state, costs, unable)

    def _known_noise_to_power(self, devices: Population, links: Links) -> NDArray[np.float64]:
        """The c / P by which devices split their power: the true one, or the server's belief."""
        if self.belief is None:
            return links.noise_to_power
        every = self.belief.noise_to_power(self.population.ids)
        self.signals.look_at(self.population, every, self.segments.sizes.tolist())
        return self.belief.noise_to_power(devices.ids)

    def _limited(self, devices: Population, number: int) -> Population:
        """The devices with the widths that the width policy allows in a round."""
        section = self.experiment.population
        if section.width == "capability":
            return devices
        return replace(
            devices,
            max_width=widest_widths(
                section,
                devices,
                self.experiment.model.widths,
                seed=self.experiment.seed,
                round=number,
                charge=self.charge(devices),
            ),
        )

    def charge(self, devices: Population) -> NDArray[np.float64] | None:
        """The remaining charge of each device as a share; None if no device has a battery."""
        return self.batteries.share(devices.ids) if self.batteries.any else None

    def collect(self, plan: Plan, outcomes: Iterator[Outcome]) -> RoundRecord:
        """Receive the updates, merge them, and return the record of the round."""
        book = RoundBook(plan, len(self.experiment.model.widths))
        for each in self.filters:
            each.begin(plan.round, self.global_model)
        stream = self.receiver.arrivals(plan, self.global_model, outcomes, book)
        absent: str = self.experiment.federation.absent
        if self.last_segments is not None:
            asked = [*plan.devices.ids.tolist(), *plan.absent]
            stream, absent = self.last_segments.filled(stream, asked, self.population), "skip"
        self.merge(
            Arrivals(
                self.global_model,
                stream,
                on_sums(self.filters),
                asked=self._asked(plan) if absent != "skip" else 0,
                absent=absent,
            )
        )
        for _ in stream:  # updates that a method ignores were trained and sent all the same
            pass
        if self.belief is not None:
            sent = [plan.signals[row] for row in book.rows]
            self.belief.observe(plan.devices.ids[book.rows], sent, book.decoded)
        before_s = self.clock_s
        self.channel_state, self.round = plan.channel_state, plan.round
        self.last_models.add(self.round, self.global_model)
        self.clock_s += plan.timing.duration_s
        self.batteries.drain(plan.timing.ids, plan.timing.used_j)
        trained_s = time.perf_counter()
        clock = clock_fields(before_s, self.clock_s, plan.timing, self.batteries)
        if self.batteries.empty.all():
            clock["stopped_by"] = NOBODY_LEFT
        scores = self.scores(plan.round), self.averaged_scores(plan.round)
        return round_record(self, plan, book, *scores, trained_s, clock)

    def _asked(self, plan: Plan) -> NDArray[np.float64]:
        """Per parameter, the number of devices that should deliver it in a round."""
        absent = self._limited(self.population.take(np.array(plan.absent, np.int64)), plan.round)
        assigned = [*plan.assignments, *(self._assign(device, plan.round) for device in absent)]
        sent = Counter(
            (tuple(segment for message in each.messages for segment in message), each.channels)
            for each in assigned
            if each is not None
        )
        total = np.zeros(len(self.global_model))
        for (segments, order), devices in sent.items():
            total[self.receiver.positions(segments, order)] += devices
        return total

    def merge(self, arrivals: Arrivals) -> None:
        """Let the method compute the next model from what arrived."""
        model, state = self.method.aggregate(self.global_model, self.method_state, arrivals)
        state = checked_state(self._method_words, state, self.method_state)
        self.global_model, self.method_state = self._checked_model(model), state

    def _checked_model(self, model: Vector) -> Vector:
        """The method's model in the form that engines and checkpoints need."""
        expected = self.global_model.shape
        if np.shape(model) != expected:
            raise RequestError(
                f"{self._method_words} returned a model of shape {np.shape(model)}, not {expected}"
            )
        model = np.ascontiguousarray(model, np.float32)
        if not np.isfinite(model).all():
            raise self._diverged(self.round + 1, "the merged model holds a NaN or an infinity")
        return model

    def _diverged(self, number: int, what: str) -> RunError:
        """The error for a model from which no run can go on, with the device to look at."""
        changes = self.receiver.changes
        device = max(changes, key=changes.__getitem__, default=-1)
        whose = (
            f"; the largest change came from device {device}, with a norm of {changes[device]:.3g}"
            if changes.get(device)
            else ""
        )
        return RunError(
            f"round {number}: {what}{whose}. Nothing of this round is kept: resume without that "
            "device, or start again with a lower training.learning_rate"
        )

    def _assign(self, device: Device, number: int) -> Assignment | None:
        random = partial(generator, self.experiment.seed, "assignment", number, device.id)
        return self.method.assign(device, number, random)

    def scores(self, number: int) -> dict[int, Score]:
        """Test the model at the method's widths, if an evaluation is due."""
        if not self._is_tested(number):
            return {}
        tested = self.method.evaluates()
        if self.in_detail:
            scored = self.engine.evaluate(self.global_model, tested, by_label=True)
        else:
            scored = self.engine.evaluate(self.global_model, tested)
        if not np.isfinite([score.loss for score in scored]).all():
            raise self._diverged(number, "the merged model's loss on the test set is not finite")
        return dict(zip(tested, scored, strict=True))

    def averaged_scores(self, number: int) -> dict[int, Score] | None:
        """Test the mean of the last models, where that is asked for and the round is tested."""
        mean = self.last_models.mean(number) if self._is_tested(number) else None
        if mean is None:
            return None
        tested = self.method.evaluates()
        return dict(zip(tested, self.engine.evaluate(mean, tested), strict=True))

    def _is_tested(self, number: int) -> bool:
        return self.experiment.federation.tests(number) or number == self.experiment.rounds

    def outcomes(self, plan: Plan) -> Iterator[Outcome]:
        """The engine's outcomes; an error names the round and the device."""
        tasks = plan.tasks
        outcomes = self._trained(plan, tasks)
        for task in tasks:
            try:
                yield next(outcomes)
            except (RequestError, RunError):
                raise
            except Exception as error:
                raise RunError(
                    f"round {plan.round}, device {task.device}, training: {error}"
                ) from error
        # run the engine's generator to its end: it may still report that there was no quorum
        next(outcomes, None)

    def _trained(self, plan: Plan, tasks: list[Task]) -> Iterator[Outcome]:
        """Each device from the global model, or from its own last one where it missed that."""
        heard_it = [task for task in tasks if task.device not in plan.own_start]
        outcomes = self.engine.train(plan.round, self.global_model, heard_it)
        for task in tasks:
            if task.device in plan.own_start:
                start = self.engine.states.model(task.device)
                outcome = next(self.engine.train(plan.round, start, [task]))
            else:
                outcome = next(outcomes)
            if self.trains_on and isinstance(outcome, Update):
                self.engine.states.put_model(outcome.device, outcome.parameters)
            yield outcome
        yield from outcomes


def _taken(tensors: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Remove the arrays with a prefix from a dictionary and return them without it."""
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors.pop(name) for name in names}
