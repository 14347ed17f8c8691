"""The channel of a federation: path loss, shadowing, block fading, successive decoding.

With the default parts it is the paper's, equation (5): decoding succeeds if and only if the gain
suffices. A signal lasts until its longest message ends and has the device's full power for that
time. Other parts change the gains (`fading`, `process`, `shadowing_db`), the mean (`path_loss`),
the receiver (`decoder`) or how often a signal may be sent (`attempts`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Population
from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio.attempts import Attempts
from slimfl.radio.decoders import Decoder, Outage, averaged, build_decoder, drawn
from slimfl.radio.fading import (
    Fading,
    FadingProcess,
    GaussianFading,
    NoFading,
    Shadowed,
    build_fading,
    build_process,
    build_profile,
    remembered,
    shadow,
    shadow_gain,
)
from slimfl.radio.links import Floats, Links, Payload, Receptions, State
from slimfl.radio.path_loss import Case, PathLoss, build_path_loss, drawn_case, per_distinct
from slimfl.radio.signals import Signal
from slimfl.rng import generator

#: Number of devices decoded at once: few enough for their thresholds to fit into the cache.
CHUNK = 1 << 15


@dataclass(frozen=True)
class OutageChannel:
    """Fading gains against the thresholds of successive decoding."""

    noise_dbm: float
    """sigma^2 at the receiver, including any implementation loss."""
    path_loss: PathLoss
    bandwidth_hz: float
    fading: Fading
    needs_payload: bool = False
    process: FadingProcess | None = None
    """Correlation of fading from round to round; None for independent rounds."""
    shadowing_db: float | None = None
    """Deviation of log-normal shadowing; None for the path loss model's own."""
    shadowing_correlation: float = 0.0
    """Correlation of the shadowing in consecutive rounds; 1 if it never changes."""
    decoder: Decoder = field(default_factory=Outage)
    attempts: Attempts = field(default_factory=Attempts)

    def start(self, population: Population, seed: int) -> State:
        """The state of correlated parts; empty in the paper's case."""
        count = _count(population.ids)
        state = self.process.start(seed, count) if self.process else {}
        if self.shadowing_correlation and self.has_shadowing:
            state["shadow"] = shadow(seed, 0, count)
        return state

    def links(
        self, state: State, round: int, devices: Population, seed: int
    ) -> tuple[Links, State]:
        """Draw the gains; device k gets draw k, whoever else takes part."""
        ids = devices.ids
        cases = self.path_loss.cases(devices.distance_m)
        chosen = drawn_case(cases, seed, ids)
        ratio = self._noise_to_power(devices, _of_case([case.loss for case in cases], chosen))
        sigma_db = _of_case([np.float64(self._sigma_db(case)) for case in cases], chosen)
        del cases, chosen  # free the losses of a million devices before their gains are drawn
        gains, later, after = self._fading_gains(state, seed, round, ids)
        if self.has_shadowing:
            factor, after = self._shadow(state, after, sigma_db, seed, round, ids)
            gains *= factor
            later = None if later is None else later * factor[:, None]
        draws = None
        if not self.decoder.certain:
            draws = generator(seed, "decoding", round).random(_count(ids))[ids]
        return Links(seed, round, ids, gains, ratio, devices.power_dbm, later, draws), after

    def receive(
        self, links: Links, signals: Sequence[Signal], payloads: Sequence[Payload] | None
    ) -> Receptions:
        """Decode devices that send the same signal together."""
        decoded = np.zeros(len(links), np.int64)
        used = np.ones_like(decoded)
        kinds = alike(signals)
        for sent, where in kinds:
            for begin in range(0, len(where), CHUNK):
                rows = where[begin : begin + CHUNK]
                if links.later_gains is None:
                    decoded[rows] = self._decoded(links, sent, rows, links.gains[rows])
                else:
                    decoded[rows], used[rows] = self._with_attempts(links, sent, rows)
        return Receptions(decoded, used, *self.costs(links, kinds, used))

    def costs(
        self,
        links: Links,
        kinds: Sequence[tuple[Signal, NDArray[np.int64]]],
        used: NDArray[np.int64],
    ) -> tuple[Floats, Floats]:
        """Airtime in s and transmit energy in J of the attempts that were used."""
        airtime_s, energy_j = np.zeros(len(links)), np.zeros(len(links))
        for sent, where in kinds:
            airtime_s[where] = sent.airtime_s(self.bandwidth_hz)
            energy_j[where] = sent.full_power_s(self.bandwidth_hz)
        if links.later_gains is not None:
            airtime_s *= used
            energy_j *= used
        energy_j *= per_distinct(lambda dbm: 10 ** ((dbm - 30) / 10), links.power_dbm)
        return airtime_s, energy_j

    def probabilities(self, devices: Population, signal: Signal) -> Floats | None:
        """Equation (5), or its equivalent, averaged over possible obstacles."""
        found: Floats | None = None
        for case in self.path_loss.cases(devices.distance_m):
            part = averaged(
                self.decoder,
                signal.coding,
                signal.message_bits,
                self.attempts.reaches(self._shadowed(case)),
                self._noise_to_power(devices, case.loss),
            )
            if part is None:
                return None
            part = part * case.probability[..., None]
            found = part if found is None else found + part
        return found

    def noise_to_power(self, devices: Population) -> Floats:
        """c / P = sigma^2 d^beta / P of every device; the mean in decibels over the cases."""
        cases = self.path_loss.cases(devices.distance_m)
        if len(cases) == 1:
            return self._noise_to_power(devices, cases[0].loss)
        logs = sum(case.probability * np.log(case.loss) for case in cases)
        return self._noise_to_power(devices, np.exp(logs))

    def _noise_to_power(self, devices: Population, loss: Floats) -> Floats:
        noise = per_distinct(lambda dbm: 10 ** ((self.noise_dbm - dbm) / 10), devices.power_dbm)
        return np.asarray(noise * loss)

    def _fading_gains(
        self, state: State, seed: int, round: int, ids: NDArray[np.int64]
    ) -> tuple[Floats, Floats | None, State]:
        """Gains without shadowing: of the first attempt, and of later ones."""
        count = _count(ids)
        if self.process is None:
            everybody = self.fading.gains(seed, round, count)
        else:
            drawn, moved = self.process.step(state, seed, round, count)
            state = {**state, **moved}
            everybody = np.empty(count)
            for begin in range(0, count, CHUNK):
                rows = slice(begin, min(begin + CHUNK, count))
                everybody[rows] = self._gaussian.from_scattering(drawn[rows])
        later = None
        if self.attempts.most > 1:
            of_all = self.attempts.later_gains(self.fading, everybody, seed, round)
            later = np.ascontiguousarray(of_all[:, ids].T)
        return everybody[ids], later, state

    def _shadow(
        self,
        state: State,
        after: State,
        sigma_db: Floats,
        seed: int,
        round: int,
        ids: NDArray[np.int64],
    ) -> tuple[Floats, State]:
        """The factor of shadowing on every gain."""
        if "shadow" in state:
            memory = self.shadowing_correlation
            normal = remembered(state["shadow"], shadow(seed, round, len(state["shadow"])), memory)
            after = {**after, "shadow": normal}
        else:
            normal = shadow(seed, round, _count(ids))
        return shadow_gain(normal[ids], sigma_db), after

    def _decoded(
        self, links: Links, sent: Signal, rows: NDArray[np.int64], gains: Floats
    ) -> NDArray[np.int64]:
        """The number of messages decoded at these gains."""
        ratio = links.noise_to_power[rows]
        if self.decoder.certain or links.decoding_draws is None:
            thresholds = sent.coding.thresholds(ratio)
            return np.asarray((gains[:, None] >= thresholds).sum(axis=1))
        known = self.decoder.probabilities(sent.coding, sent.message_bits, gains / ratio)
        if known is None:
            raise RequestError(
                "the length of the messages is not known; give radio.codeword_symbols"
            )
        return drawn(known, links.decoding_draws[rows])

    def _with_attempts(
        self, links: Links, sent: Signal, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Messages decoded, and the number of attempts used."""
        assert links.later_gains is not None
        gains = links.gains[rows].copy()
        decoded = self._decoded(links, sent, rows, gains)
        used = np.ones_like(decoded)
        for later in links.later_gains[rows].T:
            waiting = decoded < len(sent.messages)
            if not waiting.any():
                break
            gains[waiting] += later[waiting]
            used[waiting] += 1
            decoded[waiting] = self._decoded(links, sent, rows[waiting], gains[waiting])
        return decoded, used

    @property
    def has_shadowing(self) -> bool:
        """True if there is any shadowing, given or the path loss model's own."""
        nowhere = np.array([100.0])
        return any(self._sigma_db(case) > 0 for case in self.path_loss.cases(nowhere))

    def _sigma_db(self, case: Case) -> float:
        return case.shadowing_db if self.shadowing_db is None else self.shadowing_db

    def _shadowed(self, case: Case) -> Fading:
        sigma_db = self._sigma_db(case)
        return Shadowed(self._gaussian, sigma_db) if sigma_db else self.fading

    @property
    def _gaussian(self) -> GaussianFading:
        if not isinstance(self.fading, GaussianFading):
            raise RequestError(
                f"{type(self.fading).__name__} can be neither shadowed nor correlated: it has no "
                "from_scattering and no sum_survival"
            )
        return self.fading


def outage_channel(section: RadioSection) -> OutageChannel:
    """The channel that the `radio` section describes.

    With a TDL profile it is without fading, which `SelectiveChannel` adds.
    """
    return OutageChannel(
        section.noise + section.implementation_loss_db,
        build_path_loss(section),
        section.bandwidth_hz,
        NoFading() if build_profile(section) else build_fading(section),
        process=build_process(section),
        shadowing_db=section.shadowing_db,
        shadowing_correlation=section.shadowing_correlation,
        decoder=build_decoder(section),
        attempts=Attempts.of(section),
    )


def alike(signals: Sequence[Signal]) -> list[tuple[Signal, NDArray[np.int64]]]:
    """The distinct signals, each with the rows of the devices that send it."""
    # hashing a signal is slower than taking its id
    which = np.fromiter(map(id, signals), np.int64, len(signals))
    kinds, first = np.unique(which, return_index=True) if _differ(which) else (which[:1], [0])
    if len(kinds) == 1:
        return [(signals[0], np.arange(len(which)))]
    return [
        (signals[row], np.flatnonzero(which == kind))
        for kind, row in zip(kinds.tolist(), np.asarray(first).tolist(), strict=True)
    ]


def _differ(which: NDArray[np.int64]) -> bool:
    return len(which) == 0 or bool((which != which[0]).any())


def _count(ids: NDArray[np.int64]) -> int:
    """The number of draws needed to include these devices."""
    return int(ids.max(initial=-1)) + 1


def _of_case(values: Sequence[Any], chosen: NDArray[np.int64] | None) -> Floats:
    """Each device's value in its case."""
    return np.asarray(values[0] if chosen is None else np.choose(chosen, values))
