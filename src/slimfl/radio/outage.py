"""The channel of a federation: path loss, shadowing, block fading, successive decoding.

With the default parts it is the paper's, equation (5): decoding succeeds if and only if the gain
suffices. A signal lasts until its longest message ends and has the device's full power for that
time. Other parts change the gains (`fading`, `process`, `shadowing_db`), the mean (`path_loss`),
the receiver (`decoder`) or how often a signal may be sent (`attempts`). Channels that differ in
more (a band, pairs, rates that follow the gain) extend it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from slimfl.devices import Population
from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio.channel import Indices, Links, Payload, Receptions, Signal, State
from slimfl.radio.coding import Coding, Floats
from slimfl.radio.decoders import Decoder, Outage, Reaches, averaged, build_decoder, drawn
from slimfl.radio.fading import (
    Fading,
    FadingProcess,
    Gains,
    GaussianFading,
    NoFading,
    Shadowed,
    build_fading,
    build_process,
    remembered,
    shadow,
    shadow_gain,
)
from slimfl.radio.path_loss import Case, PathLoss, build_path_loss, drawn_case, per_distinct
from slimfl.rng import generator
from slimfl.units import from_db, watt

#: Number of devices decoded at once: few enough for their thresholds to fit into the cache.
CHUNK = 1 << 15


@dataclass(frozen=True)
class Attempts:
    """How often a signal may be sent, and how its gains are related: chase combining.

    Every attempt repeats the whole signal. Maximum-ratio combining adds the signal-to-noise ratios,
    so after n attempts the gain is g_1 + ... + g_n (Chase 1985). Attempts continue until everything
    is decoded or the limit is reached; each costs the airtime and the energy of the signal again.
    The shadowing is the same for all of them.
    """

    most: int = 1
    gain: Literal["independent", "same"] = "independent"
    """Of a further attempt: new (time has passed, or another frequency is used), or the first's."""

    def reaches(self, fading: Fading) -> Reaches:
        """Pr(summed gain of all attempts >= threshold)."""
        if self.most == 1:
            return fading.survival
        if self.gain == "same":
            return lambda threshold: fading.survival(threshold / self.most)
        if not isinstance(fading, GaussianFading):
            raise RequestError(
                f"{type(fading).__name__} cannot be combined over independent attempts: it has "
                "no sum_survival"
            )
        return lambda threshold: fading.sum_survival(threshold, self.most)

    def later_gains(self, fading: Fading, first: Gains, seed: int, round: int) -> Floats:
        """[attempt after the first, device]: the gains of devices 0, 1, ... without shadowing."""
        if self.gain == "same":
            return np.broadcast_to(first, (self.most - 1, len(first)))
        keys = generator(seed, "attempts", round).integers(2**62, size=self.most - 1).tolist()
        return np.stack([fading.gains(key, round, len(first)) for key in keys])


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
        if not isinstance(self.decoder, Outage):
            draws = generator(seed, "decoding", round).random(_count(ids))[ids]
        return Links(seed, round, ids, gains, ratio, devices.power_dbm, later, draws), after

    def memoryless_links(self, device: Population, count: int, seed: int, round: int) -> Links:
        """The links of many devices like the first of some, in rounds that know of no others.

        Args:
            device: One at least.
            count: How many.
            seed: The experiment's.
            round: Number of the round.
        """
        many = Population.alike(
            np.ones(count, np.int64),
            max_width=0,
            power_dbm=float(device.power_dbm[0]),
            distance_m=float(device.distance_m[0]),
        )
        memoryless = replace(self, process=None, shadowing_correlation=0.0)
        return memoryless.links({}, round, many, seed)[0]

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
                decoded[rows], used[rows] = self._with_attempts(links, sent, rows)
        return Receptions(decoded, used, *self.costs(links, kinds, used))

    def costs(
        self, links: Links, kinds: Sequence[tuple[Signal, Indices]], used: Indices
    ) -> tuple[Floats, Floats]:
        """Airtime in s and transmit energy in J of the attempts that were used.

        Args:
            links: One row per device.
            kinds: Every distinct signal, and the rows that send it.
            used: [row] number of attempts.
        """
        airtime_s, energy_j = np.zeros(len(links)), np.zeros(len(links))
        for sent, where in kinds:
            airtime_s[where] = sent.airtime_s(self.bandwidth_hz)
            energy_j[where] = sent.full_power_s(self.bandwidth_hz)
        if links.later_gains is not None:
            airtime_s *= used
            energy_j *= used
        energy_j *= per_distinct(watt, links.power_dbm)
        return airtime_s, energy_j

    def probabilities(self, devices: Population, signal: Signal) -> Floats | None:
        """Equation (5), or its equivalent, averaged over possible obstacles."""
        found: Floats | None = None
        for case in self.path_loss.cases(devices.distance_m):
            part = self._averaged(case, signal, self._noise_to_power(devices, case.loss))
            if part is None:
                return None
            part = part * case.probability[..., None]
            found = part if found is None else found + part
        return found

    def _averaged(self, case: Case, signal: Signal, noise_to_power: Floats) -> Floats | None:
        """[c / P, message]: over the distribution of the gain."""
        reaches = self.attempts.reaches(self._shadowed(case))
        return averaged(self.decoder, signal.coding, signal.message_bits, reaches, noise_to_power)

    def noise_to_power(self, devices: Population) -> Floats:
        """c / P = sigma^2 d^beta / P of every device; the mean in decibels over the cases."""
        cases = self.path_loss.cases(devices.distance_m)
        if len(cases) == 1:
            return self._noise_to_power(devices, cases[0].loss)
        logs = sum(case.probability * np.log(case.loss) for case in cases)
        return self._noise_to_power(devices, np.exp(logs))

    def _noise_to_power(self, devices: Population, loss: Floats) -> Floats:
        noise = per_distinct(lambda dbm: from_db(self.noise_dbm - dbm), devices.power_dbm)
        return np.asarray(noise * loss)

    def _fading_gains(
        self, state: State, seed: int, round: int, ids: Indices
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
        ids: Indices,
    ) -> tuple[Floats, State]:
        """The factor of shadowing on every gain."""
        if "shadow" in state:
            memory = self.shadowing_correlation
            normal = remembered(state["shadow"], shadow(seed, round, len(state["shadow"])), memory)
            after = {**after, "shadow": normal}
        else:
            normal = shadow(seed, round, _count(ids))
        return shadow_gain(normal[ids], sigma_db), after

    def decoded(
        self,
        coding: Coding,
        bits: Sequence[float],
        gains: Floats,
        noise_to_power: Floats,
        uniform: Floats | None,
    ) -> Indices:
        """[..., device]: the number of messages decoded at known gains.

        Args:
            coding: How the messages share the upload.
            bits: Those of every message; empty if they are not known.
            gains: [..., device] summed over the attempts so far.
            noise_to_power: [device] c / P.
            uniform: [device] a uniform number each; None if decoding is certain.
        """
        if isinstance(self.decoder, Outage):
            thresholds = coding.thresholds(noise_to_power, self.decoder.gap)
            return np.asarray((gains[..., None] >= thresholds).sum(axis=-1))
        assert uniform is not None
        known = needed(self.decoder.probabilities(coding, bits, gains / noise_to_power))
        return drawn(known, uniform)

    def summed(self, links: Links) -> Floats:
        """[device], or [device, subcarrier]: the gain after all attempts."""
        if links.later_gains is None:
            return links.over_band
        return np.asarray(links.gains + links.later_gains.sum(axis=1))

    def _decoded(self, links: Links, sent: Signal, rows: Indices, gains: Floats) -> Indices:
        draws = links.decoding_draws
        return self.decoded(
            sent.coding,
            sent.message_bits,
            gains,
            links.noise_to_power[rows],
            None if draws is None else draws[rows],
        )

    def _with_attempts(self, links: Links, sent: Signal, rows: Indices) -> tuple[Indices, Indices]:
        """Messages decoded, and the number of attempts used."""
        gains = links.over_band[rows]
        decoded = self._decoded(links, sent, rows, gains)
        used = np.ones_like(decoded)
        if links.later_gains is None:
            return decoded, used
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
    """The channel that the `radio` section describes, for devices that send alone on a flat band.

    With a TDL profile it is without fading, which `selective` adds.
    """
    return OutageChannel(**parts(section))


def parts(section: RadioSection) -> dict[str, Any]:
    """What the `radio` section says of an `OutageChannel`, or of one that extends it."""
    return {
        "noise_dbm": section.noise + section.implementation_loss_db,
        "path_loss": build_path_loss(section),
        "bandwidth_hz": section.bandwidth_hz,
        "fading": NoFading() if section.frequency_selective else build_fading(section),
        "process": build_process(section),
        "shadowing_db": section.shadowing_db,
        "shadowing_correlation": section.shadowing_correlation,
        "decoder": build_decoder(section),
        "attempts": Attempts(section.max_attempts, section.retransmission_gain),
    }


def needed(known: Floats | None) -> Floats:
    """Decoding probabilities, refused where they need lengths that nobody gave."""
    if known is None:
        raise RequestError(
            "the decoding probabilities depend on the length of the messages, which is known "
            'in a run only; give radio.codeword_symbols with radio.decoder = "normal", or '
            "choose another decoder"
        )
    return known


def alike(signals: Sequence[Signal]) -> list[tuple[Signal, Indices]]:
    """The distinct signals, each with the rows of the devices that send it."""
    # hashing a signal is slower than taking its id
    which = np.fromiter(map(id, signals), np.int64, len(signals))
    if len(which) and (which == which[0]).all():
        return [(signals[0], np.arange(len(which)))]
    _, first = np.unique(which, return_index=True)
    return [(signals[row], np.flatnonzero(which == which[row])) for row in first.tolist()]


def _count(ids: Indices) -> int:
    """The number of draws needed to include these devices."""
    return int(ids.max(initial=-1)) + 1


def _of_case(values: Sequence[Any], chosen: Indices | None) -> Floats:
    """Each device's value in its case."""
    return np.asarray(values[0] if chosen is None else np.choose(chosen, values))
