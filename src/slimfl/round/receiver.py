"""From trained updates to arrivals: the radio, the refusal of invalid updates, the filters."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from torch import nn

from slimfl.engines import Missing, Outcome, Update
from slimfl.experiment import Experiment
from slimfl.methods import Arrival, Positions
from slimfl.nn import ChannelOrder, Segments, Vector, flat_order
from slimfl.radio import Channel, Links, Payload, Receptions, Signal
from slimfl.radio.ledger import with_supply
from slimfl.round.filters import Filter, Passage
from slimfl.round.plan import Plan
from slimfl.round.round_book import RoundBook
from slimfl.round.updates import RefusedUpdateError, bounded, check_update

log = logging.getLogger(__name__)

#: All parameters: one shared object for all devices that deliver everything.
ALL = slice(None)

#: Number of channel orders whose positions are cached.
REMEMBERED = 256

#: Number of updates received together; bounds the memory.
RECEIVED_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class Received:
    """The outcome of some updates; columns are in the order of `updates`."""

    updates: dict[int, Update]
    """By row of the plan."""
    links: Links
    receptions: Receptions
    arrivals: dict[int, Arrival]
    """By row of the plan, if something usable arrived."""
    refused: list[int]
    """Devices whose update was invalid."""
    clipped: list[int]
    """Devices whose update changed too much, and was bounded."""


class Receiver:
    """The server's end of the radio."""

    def __init__(
        self,
        experiment: Experiment,
        channel: Channel,
        network: nn.Module,
        segments: Segments,
        filters: Sequence[Filter],
    ) -> None:
        self.channel, self.segments, self.filters = channel, segments, filters
        self.energy = experiment.energy
        self.measured = experiment.radio.gains == "measured"
        self.federation = experiment.federation
        self.changes: dict[int, float] = {}
        """By device, the norm of what its last update changed."""
        self._where: dict[tuple[int, ...], Positions] = {}

        @lru_cache(maxsize=REMEMBERED)
        def reordered(which: tuple[int, ...], order: ChannelOrder) -> Positions:
            leading = np.concatenate([segments.positions[s] for s in which])
            where: Positions = flat_order(network, order)[leading]
            return where

        self._reordered = reordered

    def arrivals(
        self, plan: Plan, model: Vector, outcomes: Iterator[Outcome], book: RoundBook
    ) -> Iterator[Arrival]:
        """Receive updates of a model, a bounded number at a time, and yield what arrived."""
        self.changes.clear()
        for rows, got in self.received(plan, model, outcomes):
            book.receive(list(got.updates), list(got.updates.values()), got.links, got.receptions)
            book.refused += got.refused
            book.clipped += got.clipped
            for row in rows:
                arrival = got.arrivals.get(row)
                if self.filters:
                    arrival = self._filtered(plan, row, arrival)
                if arrival is not None:
                    yield arrival

    def received(
        self, plan: Plan, model: Vector, outcomes: Iterator[Outcome]
    ) -> Iterator[tuple[Sequence[int], Received]]:
        """What arrives, for a bounded number of rows at a time."""
        for begin in range(0, len(plan), RECEIVED_AT_ONCE):
            rows = range(begin, min(begin + RECEIVED_AT_ONCE, len(plan)))
            came = {row: self._usable(plan, row, next(outcomes)) for row in rows}
            usable = {row: one for row, one in came.items() if one is not None}
            yield rows, self._receive(plan, model, usable)
        # run the engine's generator to its end: it may still report that there was no quorum
        next(outcomes, None)

    def _receive(self, plan: Plan, model: Vector, updates: dict[int, Update]) -> Received:
        """What arrives of these updates, which are keyed by row of the plan."""
        sent = [plan.signals[row] for row in updates]
        links = self._links(plan, updates)
        orders = [plan.assignments[row].channels for row in updates]
        payloads = self._payloads(sent, list(updates.values()), orders)
        receptions = with_supply(self.energy, self.channel.receive(links, sent, payloads))
        arrived, refused, clipped = {}, [], []
        for k, (row, update) in enumerate(updates.items()):
            delivered = sent[k].segments_decoded(int(receptions.decoded[k]))
            if not delivered:
                continue
            where = self.positions(delivered, orders[k])
            try:
                check_update(update.parameters, len(self.segments.segment_of))
                received = receptions.payloads[k] if receptions.payloads is not None else None
                parameters = self._received(update.parameters, sent[k], received, orders[k])
                check_update(parameters, len(self.segments.segment_of))
                within, norm = bounded(parameters, model, where, self.federation)
            except RefusedUpdateError as error:
                log.warning(
                    "round %d: update of device %d refused: it %s",
                    plan.round,
                    update.device,
                    error,
                )
                refused.append(update.device)
                continue
            self.changes[update.device] = norm
            if within is not parameters:
                log.warning(
                    "round %d: update of device %d clipped: it changes the model by a norm of %.3g",
                    plan.round,
                    update.device,
                    norm,
                )
                clipped.append(update.device)
            weight = float(update.samples) if self.federation.average == "samples" else 1.0
            arrived[row] = Arrival(plan.devices.device(row), within, where, weight)
        return Received(updates, links, receptions, arrived, refused, clipped)

    def _filtered(self, plan: Plan, row: int, arrival: Arrival | None) -> Arrival | None:
        """Apply the filters, which also see devices that delivered nothing."""
        passage = Passage(plan.devices.device(row), self._counted(plan, row), arrival)
        for each in self.filters:
            passage = each.on_passage(passage)
        return passage.arrival

    def _counted(self, plan: Plan, row: int) -> Positions | None:
        """Parameters in whose mean a device counts even without an answer; None if none.

        The seed determines beforehand what the channel lets through, unless the device measures its
        own gain or the channel looks at the payload: then everything that was asked for counts.
        """
        sent = plan.signals[row]
        decoded = len(sent.messages)
        if not self.measured and not self.channel.needs_payload:
            [decoded] = self.channel.receive(plan.links.take([row]), [sent], None).decoded.tolist()
        if not decoded:
            return None
        return self.positions(sent.segments_decoded(decoded), plan.assignments[row].channels)

    def _usable(self, plan: Plan, row: int, outcome: Outcome) -> Update | None:
        """The update of a device; None, and a line in the log, if nothing usable came."""
        if isinstance(outcome, Update):
            if not self.measured or outcome.gain is not None:
                return outcome
            outcome = Missing(
                outcome.device, "it reported no measured gain; give its node a gain-file"
            )
        log.warning(
            "round %d: nothing from device %d: %s",
            plan.round,
            plan.devices.ids[row],
            outcome.reason,
        )
        return None

    def _links(self, plan: Plan, updates: dict[int, Update]) -> Links:
        """The links of these updates, with the gains that devices measured if they do."""
        links = plan.links.take(list(updates))
        if not self.measured:
            return links
        gains = [update.gain for update in updates.values()]
        return replace(links, gains=np.array(gains, np.float64))

    def _payloads(
        self,
        signals: Sequence[Signal],
        updates: Sequence[Update],
        orders: Sequence[ChannelOrder | None],
    ) -> list[Payload] | None:
        """The transmitted bytes, for channels that change them."""
        if not self.channel.needs_payload:
            return None
        expected = self.segments.segment_of.shape
        return [
            [
                update.parameters[self.positions(message, order)].copy().view(np.uint8)
                if update.parameters.shape == expected  # otherwise it is refused on arrival
                else np.zeros(0, np.uint8)
                for message in sent.messages
            ]
            for sent, update, order in zip(signals, updates, orders, strict=True)
        ]

    def _received(
        self,
        parameters: Vector,
        sent: Signal,
        payload: Payload | None,
        order: ChannelOrder | None,
    ) -> Vector:
        """The parameters as received."""
        if payload is None:
            return parameters
        parameters = parameters.copy()
        for message, content in zip(sent.messages, payload, strict=False):
            parameters[self.positions(message, order)] = content.view(np.float32)
        return parameters

    def positions(self, which: tuple[int, ...], order: ChannelOrder | None) -> Positions:
        """Positions of the parameters of some segments; the same object for the same segments."""
        if len(which) == len(self.segments.widths):
            return ALL
        if order is not None:
            return self._reordered(which, order)
        if which not in self._where:
            self._where[which] = np.concatenate([self.segments.positions[s] for s in which])
        return self._where[which]
