"""Stages: what happens to an upload on its way, on the device and then at the server.

A run has a list of them, in the order of the device's side; the server passes it in reverse order.
The radio is the last, so what is before it changes what is sent, and is undone behind it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from torch import nn

from slimfl.engines import Missing, Outcome, Update
from slimfl.experiment import Experiment, FederationSection
from slimfl.experiment.naming import construct, resolve
from slimfl.methods import Positions, RunningMean, State
from slimfl.nn import ChannelOrder, Segments, Vector, flat_order
from slimfl.radio import Channel, Links, Payload, Receptions, Signal
from slimfl.round.reasons import CLIPPED, NO_ANSWER, REFUSED
from slimfl.round.uploads import Plan, Upload, taken

log = logging.getLogger(__name__)

#: All parameters: one shared object for all devices that deliver everything.
ALL = slice(None)

#: Number of channel orders whose positions are cached.
REMEMBERED = 256

#: Number of uploads that pass the stages together; bounds the memory.
UPLOADS_AT_ONCE = 64

#: A change this many times larger than the bound is no training at all, and refused like infinity.
IMPLAUSIBLE = 1000

#: The positions of the parameters of some segments, in an order of the channels.
Places = Callable[[tuple[int, ...], ChannelOrder | None], Positions]


class Stage:
    """Override what you need; by default everything passes unchanged.

    A stage that must remember something returns it from `state` as named arrays of fixed shapes,
    and every checkpoint has it.
    """

    @property
    def works_on_the_mean(self) -> bool:
        """True if it has a `finish`; it then works only with methods that merge the mean."""
        return type(self).finish is not Stage.finish

    def bits(self, parameters: int, bits: float) -> float:
        """The bits of a segment behind `encode`; airtime and energy follow from them.

        Args:
            parameters: Number of parameters of the segment.
            bits: What they take before this stage.
        """
        return bits

    def encode(self, upload: Upload, plan: Plan) -> None:
        """On the device: change `upload.parameters` to what is sent instead."""

    def decode(self, upload: Upload, plan: Plan) -> None:
        """At the server: change what arrived, `upload.parameters` at `upload.where`."""

    def finish(self, mean: RunningMean, plan: Plan) -> None:
        """At the server: change the sums of all updates before they become a mean."""

    def state(self) -> State:
        """What the stage remembers."""
        return {}

    def restore(self, state: State) -> None:
        """Take back what `state` returned."""

    def encode_all(self, uploads: Sequence[Upload], plan: Plan) -> None:
        """Encode what devices have learned, unless it is invalid."""
        if type(self).encode is Stage.encode:
            return
        for upload in uploads:
            if upload.parameters is not None and problem(upload.parameters, plan.model) is None:
                self.encode(upload, plan)

    def decode_all(self, uploads: Sequence[Upload], plan: Plan) -> None:
        """Decode what has arrived."""
        for upload in uploads:
            if upload.where is not None:
                self.decode(upload, plan)


def named_stages(experiment: Experiment, segments: Segments, places: Places) -> list[Stage]:
    """The stages that an experiment names, built with their options.

    A stage with a parameter named `segments` or `places` gets those of the network.
    """
    offered = {"segments": segments, "places": places, "widths": experiment.model.widths}
    return [
        construct(
            "stage",
            section.name,
            resolve("stage", section.name, {}, lambda made: issubclass(made, Stage)),
            section.options,
            offered,
            key="stages",
        )
        for section in experiment.stages
    ]


def through(
    stages: Sequence[Stage], plan: Plan, outcomes: Iterator[Outcome], measured: bool
) -> Iterator[Upload]:
    """Every upload behind all stages, in the order of the plan.

    Args:
        stages: In the order of the device's side.
        plan: The plan of the round.
        outcomes: What devices have learned, in the order of the plan.
        measured: True if devices report the gains of their links.
    """
    for begin in range(0, len(plan), UPLOADS_AT_ONCE):
        rows = range(begin, min(begin + UPLOADS_AT_ONCE, len(plan)))
        uploads = [_learned(plan, row, next(outcomes), measured) for row in rows]
        for stage in stages:
            stage.encode_all(uploads, plan)
        for stage in reversed(stages):
            stage.decode_all(uploads, plan)
        yield from uploads
    # run the engine's generator to its end: it may still report that there was no quorum
    next(outcomes, None)


def _learned(plan: Plan, row: int, outcome: Outcome, measured: bool) -> Upload:
    """What a device has learned; without an answer, and with a line in the log, if nothing came."""
    device = int(plan.devices.ids[row])
    if isinstance(outcome, Update) and measured and outcome.gain is None:
        outcome = Missing(device, "it reported no measured gain; give its node a gain-file")
    if isinstance(outcome, Missing):
        log.warning("round %d: nothing from device %d: %s", plan.round, device, outcome.reason)
        return Upload(row, device, plan.work[row], plan.signals[row], NO_ANSWER)
    return Upload(
        row,
        device,
        plan.work[row],
        plan.signals[row],
        parameters=outcome.parameters,
        samples=outcome.samples,
        losses=np.asarray(outcome.losses, np.float64),
        images_seen=np.asarray(outcome.images_seen, np.int64),
        gain=float("nan") if outcome.gain is None else outcome.gain,
    )


def problem(parameters: Vector, model: Vector) -> str | None:
    """Why an update must not enter a model; None if it may."""
    if parameters.shape != model.shape:
        return f"has shape {parameters.shape}, not {model.shape}"
    return None if np.isfinite(parameters).all() else "holds a NaN or an infinity"


def _refuse(upload: Upload, plan: Plan, why: str) -> None:
    log.warning("round %d: update of device %d refused: it %s", plan.round, upload.device, why)
    upload.missing, upload.where = REFUSED, None


class Bound(Stage):
    """Bounds what one update changes, so that one device cannot poison a run."""

    def __init__(self, section: FederationSection) -> None:
        self.section = section
        self.changes: dict[int, float] = {}
        """By device, the norm of what its last update changed."""

    def decode(self, upload: Upload, plan: Plan) -> None:
        """Scale a large change down; refuse one that no training makes."""
        assert upload.parameters is not None
        assert upload.where is not None
        try:
            within, norm = bounded(upload.parameters, plan.model, upload.where, self.section)
        except RefusedUpdateError as error:
            _refuse(upload, plan, str(error))
            return
        self.changes[upload.device] = norm
        if within is not upload.parameters:
            words = "round %d: update of device %d clipped: it changes the model by a norm of %.3g"
            log.warning(words, plan.round, upload.device, norm)
            upload.parameters, upload.missing = within, CLIPPED


class RefusedUpdateError(Exception):
    """An update that must not enter the average, and why."""


def bounded(
    parameters: Vector, model: Vector, where: Positions, section: FederationSection
) -> tuple[Vector, float]:
    """An update whose change of the model is within bounds, and the norm that its change had.

    An update within the bounds is returned as it is.

    Args:
        parameters: The update.
        model: The model that it changes.
        where: The positions of what arrived.
        section: The bounds.
    """
    before = model[where]
    change = np.subtract(parameters[where], before, dtype=np.float64)
    largest, norm = float(np.abs(change).max(initial=0)), float(np.linalg.norm(change))
    if largest > IMPLAUSIBLE * section.clip_value or norm > IMPLAUSIBLE * section.clip_norm:
        raise RefusedUpdateError(
            f"changes the model by a norm of {norm:.3g} and one parameter by {largest:.3g}, which "
            "no training does"
        )
    if largest <= section.clip_value and norm <= section.clip_norm:
        return parameters, norm
    np.clip(change, -section.clip_value, section.clip_value, out=change)
    change *= min(1.0, section.clip_norm / float(np.linalg.norm(change)))
    parameters = parameters.copy()
    parameters[where] = before + change
    return parameters, norm


class Radio(Stage):
    """The radio: what the channel lets through arrives, once per upload and after training."""

    def __init__(self, experiment: Experiment, channel: Channel, places: Places) -> None:
        self.channel, self.places, self.energy = channel, places, experiment.energy
        self.measured = experiment.radio.gains == "measured"
        self.by_samples = experiment.federation.average == "samples"

    def foreseen(self, links: Links, signals: Sequence[Signal]) -> Receptions | None:
        """What will arrive, where a rule must know it before anybody has trained.

        None if that depends on what devices send or measure.
        """
        if self.measured or self.channel.needs_payload or not signals:
            return None
        return self._received(links, signals, None)

    def _received(
        self, links: Links, signals: Sequence[Signal], sent: Sequence[Payload] | None
    ) -> Receptions:
        """What arrives, with the energy that the supply gives: E = (P / eta + P_circuit) t."""
        got, energy = self.channel.receive(links, signals, sent), self.energy
        if energy.amplifier_efficiency == 1 and energy.circuit_power_w == 0:
            return got
        energy_j = got.energy_j / energy.amplifier_efficiency
        return replace(got, energy_j=energy_j + energy.circuit_power_w * got.airtime_s)

    def encode_all(self, uploads: Sequence[Upload], plan: Plan) -> None:
        """The bytes of every message, for channels that change them."""
        if not self.channel.needs_payload:
            return
        for upload in uploads:
            sent = upload.parameters
            if sent is not None and sent.shape == plan.model.shape:
                upload.payload = [
                    sent[self.places(message, upload.work.channels)].copy().view(np.uint8)
                    for message in upload.signal.messages
                ]
            elif sent is not None:  # it is refused on arrival
                upload.payload = [np.zeros(0, np.uint8) for _ in upload.signal.messages]

    def decode_all(self, uploads: Sequence[Upload], plan: Plan) -> None:
        """What arrives of these uploads, and what each has cost."""
        on_air = [upload for upload in uploads if upload.answered]
        rows = np.array([upload.row for upload in on_air], np.int64)
        links = plan.links if len(rows) == len(plan) else plan.links.take(rows)
        if self.measured:
            links = replace(links, gains=np.array([upload.gain for upload in on_air], np.float64))
        if plan.receptions is not None:
            got = taken(plan.receptions, rows)
        else:
            payloads = [each.payload or [] for each in on_air]
            signals = [each.signal for each in on_air]
            sent = payloads if self.channel.needs_payload else None
            got = self._received(links, signals, sent)
        share = np.ones(len(on_air)) if got.slot_share is None else got.slot_share
        columns = (links.gains, links.noise_to_power, links.power_dbm, got.decoded, got.attempts)
        costs = (got.airtime_s, got.energy_j, share)
        values = zip(*(column.tolist() for column in (*columns, *costs)), strict=True)
        for k, (upload, row) in enumerate(zip(on_air, values, strict=True)):
            upload.gain, upload.noise_to_power, upload.power_dbm = row[:3]
            upload.decoded, upload.attempts = row[3:5]
            upload.airtime_s, upload.energy_j, upload.slot_share = row[5:]
            if got.payloads is not None:
                upload.payload = got.payloads[k]
            if upload.arrived:
                self._arrive(upload, plan)

    def _arrive(self, upload: Upload, plan: Plan) -> None:
        assert upload.parameters is not None
        wrong = problem(upload.parameters, plan.model)
        if wrong is None and upload.payload is not None:
            upload.parameters = upload.parameters.copy()
            for message, content in zip(upload.signal.messages, upload.payload, strict=False):
                where = self.places(message, upload.work.channels)
                upload.parameters[where] = content.view(np.float32)
            wrong = problem(upload.parameters, plan.model)
        if wrong is not None:
            _refuse(upload, plan, wrong)
            return
        upload.where = self.places(upload.arrived, upload.work.channels)
        if self.by_samples:
            upload.weight = float(upload.samples)


def places_of(network: nn.Module, segments: Segments) -> Places:
    """The positions of segments in a network; the same object for the same segments."""

    @lru_cache(maxsize=REMEMBERED)
    def places(which: tuple[int, ...], order: ChannelOrder | None) -> Positions:
        if len(which) == len(segments.widths):
            return ALL
        leading: Positions = np.concatenate([segments.positions[s] for s in which])
        return leading if order is None else flat_order(network, order)[leading]

    return places


def sent_bits(stages: Sequence[Stage], sizes: Sequence[int], bits: Any) -> tuple[float, ...]:
    """The bits of every segment behind all stages, given its parameters and its bits before."""
    left: list[float] = [float(each) for each in bits]
    for stage in stages:
        left = [stage.bits(size, each) for size, each in zip(sizes, left, strict=True)]
    return tuple(left)
