"""The seconds and joules that a task costs each device, known before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Population
from slimfl.methods import Assignment
from slimfl.radio import Links, Signal
from slimfl.radio.ledger import with_supply
from slimfl.round.clock.work_times import WorkTimes, training_work
from slimfl.round.setting import Setting
from slimfl.training import planned_images
from slimfl.units import watt

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TaskCosts:
    """One row per device that is given a task."""

    ids: NDArray[np.int64]
    times: WorkTimes
    compute_j: Floats
    transmit_j: Floats
    heard: NDArray[np.bool_]
    """Whether at least one message will get through, if that is known beforehand."""

    @property
    def needed_j(self) -> Floats:
        """The energy of the whole task."""
        return np.asarray(self.compute_j + self.transmit_j)

    def take(self, rows: Any) -> TaskCosts:
        """The costs of some devices."""
        return TaskCosts(
            self.ids[rows],
            self.times.take(rows),
            self.compute_j[rows],
            self.transmit_j[rows],
            self.heard[rows],
        )


def task_costs(
    setting: Setting,
    number: int,
    devices: Population,
    assignments: Sequence[Assignment],
    signals: Sequence[Signal],
    links: Links,
) -> TaskCosts:
    """The costs of these assignments in round `number`."""
    work = training_work(_images(setting, number, devices, assignments), setting.multiply_adds)
    rate = setting.experiment.time.download_bits_per_s
    download_s = _download_bits(setting, assignments) / (np.inf if rate is None else rate)
    airtime_s, transmit_j, heard = _airtime(setting, devices, signals, links)
    times = WorkTimes(download_s, work / devices.macs_per_s, airtime_s)
    compute_j = work * setting.joule_per_mac[devices.ids]
    return TaskCosts(devices.ids, times, compute_j, transmit_j, heard)


def _images(
    setting: Setting, number: int, devices: Population, assignments: Sequence[Assignment]
) -> NDArray[np.int64]:
    """Number of images per device and width."""
    experiment = setting.experiment
    widths = len(experiment.model.widths)
    images = np.zeros((len(devices), widths), np.int64)
    held = devices.samples.tolist()
    for row, (device, assignment) in enumerate(zip(devices.ids.tolist(), assignments, strict=True)):
        if held[row]:  # in a deployment the number of samples is not known
            images[row] = planned_images(
                experiment.training,
                assignment.work,
                held[row],
                width_count=widths,
                seed=experiment.seed,
                round=number,
                device=device,
            )
    return images


def _download_bits(setting: Setting, assignments: Sequence[Assignment]) -> Floats:
    """Bits of all segments up to the widest that each device trains."""
    up_to = np.concatenate([[0.0], setting.segment_bits.cumsum()])
    widest = [max(each.widths, default=-1) + 1 for each in assignments]
    return np.asarray(up_to[widest], np.float64)


def _airtime(
    setting: Setting, devices: Population, signals: Sequence[Signal], links: Links
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Airtime, transmit energy, and whether each device will be heard.

    If that depends on what devices send or measure, one successful transmission of the whole signal
    is assumed.
    """
    channel, experiment = setting.channel, setting.experiment
    if not signals:
        return np.zeros(0), np.zeros(0), np.zeros(0, np.bool_)
    if not channel.needs_payload and experiment.radio.gains == "drawn":
        got = with_supply(experiment.energy, channel.receive(links, signals, None))
        return got.airtime_s, got.energy_j, got.decoded > 0
    airtime_s = np.array([each.airtime_s(experiment.radio.bandwidth_hz) for each in signals])
    section = experiment.energy
    power_w = watt(devices.power_dbm) / section.amplifier_efficiency
    energy_j = airtime_s * (power_w + section.circuit_power_w)
    return airtime_s, energy_j, np.ones(len(signals), np.bool_)
