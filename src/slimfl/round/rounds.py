"""A round: who is asked, what devices train and send, what arrives, what is merged.

`plan` comes before anybody has trained, `collect` afterwards. Nothing is decoded before training,
but where a rule must know earlier what will arrive: see `_needs_a_look_ahead`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Device, Population, widest_widths
from slimfl.devices.participation import cohort
from slimfl.engines import Outcome, Score, Update
from slimfl.errors import RequestError, RunError
from slimfl.methods import Arrival, Merge, Positions, RunningMean, Work
from slimfl.radio import Receptions, Signal, heard
from slimfl.rng import generator
from slimfl.round.book import Book
from slimfl.round.clock import TRAINING_PASSES, WorkCosts, round_time
from slimfl.round.reasons import BATTERY, NO_ANSWER, NO_MODEL, NOBODY_LEFT, NOT_ABLE, OFFLINE
from slimfl.round.setting import Setting
from slimfl.round.stages import through
from slimfl.round.state import RunState
from slimfl.round.uploads import Plan
from slimfl.runs.storage.record import RoundRecord
from slimfl.training import planned_images
from slimfl.units import watt


def step(setting: Setting, state: RunState) -> RoundRecord:
    """The next round, from its plan to its record."""
    planned = plan(setting, state)
    return collect(setting, state, planned, train(setting, state, planned))


def plan(setting: Setting, state: RunState) -> Plan:
    """The next round: who takes part, what devices train and send, over which links."""
    experiment, number = setting.experiment, state.round + 1
    who = cohort(setting.asking, experiment.seed, number, setting.availability)
    active, empty = np.array(who.active, np.int64), state.batteries.empty
    listening = active[~empty[active]]
    hears = _hears(setting, state, number, listening)
    deaf: list[int] = listening[~hears].tolist()
    trains_on = experiment.radio.downlink_missed == "own-model"
    given = give_work(setting, state, number, listening if trains_on else listening[hears])
    reasons = dict.fromkeys(who.dropped_out, NO_ANSWER) | dict.fromkeys(who.offline, OFFLINE)
    reasons |= {device: BATTERY for device in who.dropped_out if empty[device]}
    reasons |= dict.fromkeys(given.unable, NOT_ABLE)
    gone = dict.fromkeys(active[empty[active]].tolist(), BATTERY)
    if _may_cut_off(setting, state):
        timing = round_time(experiment, given.costs, state.batteries)
        given = replace(given.take(np.flatnonzero(timing.in_time)), timing=timing)
        gone |= timing.cut_off
    if not trains_on:
        gone |= dict.fromkeys(deaf, NO_MODEL)
    return replace(
        given,
        absent=sorted([*who.dropped_out, *gone]),
        reasons=reasons | gone,
        own_start=frozenset(deaf if trains_on else ()),
    )


def give_work(setting: Setting, state: RunState, number: int, ids: NDArray[np.int64]) -> Plan:
    """What the method has these devices do in a round, over which links, and what that costs."""
    asked = _limited(setting, state, setting.population.take(ids), number)
    given = [_assigned(setting, device, number) for device in asked]
    work = [each for each in given if each is not None]
    rows = [row for row, each in enumerate(given) if each is not None]
    devices = asked if len(rows) == len(asked) else asked.take(rows)
    seed, kept = setting.experiment.seed, state.channel
    links, channel_state = setting.channel.links(kept.arrays, number, devices, seed)
    known = links.noise_to_power
    if state.belief is not None:  # the server sets the split by what it believes
        every = state.belief.noise_to_power(setting.population.ids)
        setting.signals.look_at(setting.population, every, setting.segments.sizes.tolist())
        known = state.belief.noise_to_power(devices.ids)
    signals = setting.signals.signals((each.messages for each in work), known)
    links = links.sent(signals)
    ahead = None
    if _needs_a_look_ahead(setting, state):
        ahead = setting.radio.foreseen(links, signals)
    return Plan(
        round=number,
        model=state.model,
        devices=devices,
        work=work,
        signals=signals,
        links=links,
        channel_state=kept.checked(channel_state),
        costs=_costs(setting, number, devices, work, signals, ahead),
        receptions=ahead,
        unable=sorted({*asked.ids.tolist()} - {*devices.ids.tolist()}),
    )


def collect(
    setting: Setting, state: RunState, plan: Plan, outcomes: Iterator[Outcome]
) -> RoundRecord:
    """Pass the updates through the stages, merge them, and return the record of the round."""
    book = Book(setting, plan.round, plan.began_s, plan.absent, plan.reasons)
    mean = _mean(setting, state, plan)
    merge = begin_merge(setting, state, mean)
    setting.bound.changes.clear()
    arrived: dict[int, Positions] = {}
    for upload in through(setting.stages, plan, outcomes, setting.radio.measured):
        book.note(upload)
        if upload.where is not None and upload.parameters is not None:
            device = plan.devices.device(upload.row)
            arrival = Arrival(device, upload.parameters, upload.where, upload.weight)
            merge.add(arrival)
            if state.last_segments is not None:
                state.last_segments.add(arrival)
                arrived[upload.device] = upload.where
        upload.parameters = upload.payload = None  # merged: memory does not grow with devices
    if state.last_segments is not None:
        asked = [*plan.devices.ids.tolist(), *plan.absent]
        for stale in state.last_segments.missing(arrived, asked, setting.population):
            merge.add(stale)
    for stage in setting.stages:
        if stage.works_on_the_mean:
            stage.finish(mean, plan)
    end_merge(setting, state, merge)
    merged_s = time.perf_counter()
    clock = _move_on(setting, state, plan, book)
    return book.record(scores(setting, state), averaged_scores(setting, state), merged_s, clock)


def _move_on(setting: Setting, state: RunState, plan: Plan, book: Book) -> dict[str, object]:
    """Everything else that a round changes; returns the record's fields on time and energy."""
    uploads = book.uploads
    if state.belief is not None:
        devices, signals = [each.device for each in uploads], [each.signal for each in uploads]
        decoded = [each.decoded for each in uploads]
        state.belief.observe(np.array(devices, np.int64), signals, decoded)
    timing = plan.timing
    if timing is None:  # now it is known how long every device was on the air
        rows, costs = [each.row for each in uploads], plan.costs
        airtime_s, transmit_j = costs.airtime_s.copy(), costs.transmit_j.copy()
        airtime_s[rows] = [each.airtime_s for each in uploads]
        transmit_j[rows] = [each.energy_j for each in uploads]
        costs = replace(costs, airtime_s=airtime_s, transmit_j=transmit_j)
        timing = round_time(setting.experiment, costs, state.batteries)
    state.channel.arrays, state.round = plan.channel_state, plan.round
    if state.last_models is not None:
        state.last_models.add(state.round, state.model)
    before_s, state.clock_s = state.clock_s, state.clock_s + timing.duration_s
    clock = timing.settle(before_s, state.batteries)
    if state.batteries.empty.all():
        clock["stopped_by"] = NOBODY_LEFT
    return clock


def train(setting: Setting, state: RunState, plan: Plan) -> Iterator[Outcome]:
    """What every device of a plan learns; an error names the round and the device."""
    outcomes = _trained(setting, state, plan)
    for task in plan.tasks:
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


def _trained(setting: Setting, state: RunState, plan: Plan) -> Iterator[Outcome]:
    """Each device from the global model, or from its own last one where it missed that."""
    engine, tasks = setting.engine, plan.tasks
    if setting.experiment.radio.downlink_missed != "own-model":
        yield from engine.train(plan.round, plan.model, tasks)
        return
    heard_it = [task for task in tasks if task.device not in plan.own_start]
    outcomes = engine.train(plan.round, plan.model, heard_it)
    for task in tasks:
        if task.device in plan.own_start:
            start = engine.states.model(task.device)
            outcome = next(engine.train(plan.round, start, [task]))
        else:
            outcome = next(outcomes)
        if isinstance(outcome, Update):
            engine.states.put_model(outcome.device, outcome.parameters)
        yield outcome
    yield from outcomes


def _hears(
    setting: Setting, state: RunState, number: int, ids: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """The devices that decode the global model at the beginning of a round."""
    if setting.experiment.radio.downlink == "perfect":
        return np.ones(len(ids), np.bool_)
    return heard(
        setting.experiment.radio,
        setting.channel,
        state.channel.arrays,
        number,
        setting.population.take(ids),
        setting.experiment.seed,
    )


def _limited(setting: Setting, state: RunState, devices: Population, number: int) -> Population:
    """The devices with the widths that the width policy allows in a round."""
    experiment = setting.experiment
    if experiment.population.width == "capability":
        return devices
    widest = widest_widths(
        experiment.population,
        devices,
        experiment.model.widths,
        seed=experiment.seed,
        round=number,
        charge=state.batteries.share(devices.ids),
    )
    return replace(devices, max_width=widest)


def _assigned(setting: Setting, device: Device, number: int) -> Work | None:
    random = partial(generator, setting.experiment.seed, "assignment", number, device.id)
    return setting.method.assign(device, number, random)


def _may_cut_off(setting: Setting, state: RunState) -> bool:
    """True if a round or a battery may end before an upload does."""
    return setting.experiment.time.mode != "wait-for-all" or state.batteries.any


def _needs_a_look_ahead(setting: Setting, state: RunState) -> bool:
    """True if a rule must know before training what will arrive.

    Who is in time, and when an asynchronous upload ends, depends on retransmissions; who is counted
    for privacy must not depend on what devices answer.
    """
    return _may_cut_off(setting, state) or setting.privacy is not None


def _costs(
    setting: Setting,
    number: int,
    devices: Population,
    work: list[Work],
    signals: list[Signal],
    ahead: Receptions | None,
) -> WorkCosts:
    """Time and energy of every device's work, before it begins.

    Where it is not known how often a device will send, one transmission is assumed.
    """
    experiment, widths = setting.experiment, len(setting.experiment.model.widths)
    images = np.zeros((len(work), widths), np.int64)
    held = devices.samples.tolist()
    for row, (device, each) in enumerate(zip(devices.ids.tolist(), work, strict=True)):
        if held[row]:  # in a deployment the number of samples is not known
            images[row] = planned_images(
                experiment.training,
                each,
                held[row],
                width_count=widths,
                seed=experiment.seed,
                round=number,
                device=device,
            )
    multiply_adds = TRAINING_PASSES * (images @ np.asarray(setting.multiply_adds, np.float64))
    up_to = np.concatenate([[0.0], setting.segment_bits.cumsum()])
    widest = [max(each.widths, default=-1) + 1 for each in work]
    rate = experiment.time.download_bits_per_s
    if ahead is not None:
        airtime_s, transmit_j, arrives = ahead.airtime_s, ahead.energy_j, ahead.decoded > 0
    else:
        bandwidth_hz, energy = experiment.radio.bandwidth_hz, experiment.energy
        airtime_s = np.array([signal.airtime_s(bandwidth_hz) for signal in signals])
        power_w = watt(devices.power_dbm) / energy.amplifier_efficiency
        transmit_j = airtime_s * (power_w + energy.circuit_power_w)
        arrives = np.ones(len(work), np.bool_)
    return WorkCosts(
        devices.ids,
        download_s=up_to[widest] / (np.inf if rate is None else rate),
        training_s=multiply_adds / devices.macs_per_s,
        airtime_s=airtime_s,
        compute_j=multiply_adds * setting.joule_per_mac[devices.ids],
        transmit_j=transmit_j,
        heard=arrives,
    )


def _mean(setting: Setting, state: RunState, plan: Plan) -> RunningMean:
    """The mean of a round, which may also count devices that deliver nothing."""
    absent = setting.experiment.federation.absent
    if absent in ("skip", "stale"):
        return RunningMean(plan.model)
    silent = setting.population.take(np.array(plan.absent, np.int64))
    silent = _limited(setting, state, silent, plan.round)
    work = [*plan.work, *(_assigned(setting, device, plan.round) for device in silent)]
    sent = Counter((each.segments, each.channels) for each in work if each is not None)
    asked = np.zeros(len(plan.model))
    for (segments, order), devices in sent.items():
        asked[setting.places(segments, order)] += devices
    return RunningMean(plan.model, asked=asked, absent=absent)


def begin_merge(setting: Setting, state: RunState, mean: RunningMean) -> Merge:
    """The method's merge of a round."""
    merge = setting.method.merge(mean, state.method.arrays)
    if not merge.uses_the_mean and any(stage.works_on_the_mean for stage in setting.stages):
        raise RequestError(
            "this method reads individual updates, but a stage such as the noise for privacy works "
            "only on their mean; remove the stage or choose another method"
        )
    return merge


def end_merge(setting: Setting, state: RunState, merge: Merge) -> None:
    """Take over the method's new model and state, in the form that engines and checkpoints need."""
    model, kept = merge.result()
    expected = state.model.shape
    if np.shape(model) != expected:
        raise RequestError(
            f"{state.method.words} returned a model of shape {np.shape(model)}, not {expected}"
        )
    model, kept = np.ascontiguousarray(model, np.float32), state.method.checked(kept)
    if not np.isfinite(model).all():
        raise _diverged(setting, state.round + 1, "the merged model holds a NaN or an infinity")
    state.method.arrays, state.model = kept, model


def _diverged(setting: Setting, number: int, what: str) -> RunError:
    """The error for a model from which no run can go on, with the device to look at."""
    changes = setting.bound.changes
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


def scores(setting: Setting, state: RunState) -> dict[int, Score]:
    """Test the model at the method's widths, if an evaluation is due."""
    if not _is_tested(setting, state.round):
        return {}
    by_label = {"by_label": True} if setting.in_detail else {}
    scored = setting.engine.evaluate(state.model, setting.tested, **by_label)
    if not np.isfinite([score.loss for score in scored]).all():
        what = "the merged model's loss on the test set is not finite"
        raise _diverged(setting, state.round, what)
    return dict(zip(setting.tested, scored, strict=True))


def averaged_scores(setting: Setting, state: RunState) -> dict[int, Score] | None:
    """Test the mean of the last models, where that is asked for and the round is tested."""
    if state.last_models is None or not _is_tested(setting, state.round):
        return None
    mean = state.last_models.mean(state.round)
    if mean is None:
        return None
    return dict(zip(setting.tested, setting.engine.evaluate(mean, setting.tested), strict=True))


def _is_tested(setting: Setting, number: int) -> bool:
    experiment = setting.experiment
    return experiment.federation.tests(number) or number == experiment.rounds
