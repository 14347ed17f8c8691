"""Deliveries per device of one run, and its gains against the thresholds, for the page."""

from itertools import islice
from typing import Any

import numpy as np

from slimfl.errors import RequestError
from slimfl.experiment import Experiment, PopulationSection
from slimfl.methods import method, method_names
from slimfl.methods.method import full_work
from slimfl.radio import noise_to_power, signal
from slimfl.report.live.followed import Followed
from slimfl.report.pages.plots import DEVICES, Lines
from slimfl.results.curves import POINTS
from slimfl.results.groups import BUILT_IN_CHANNEL
from slimfl.results.records import RunRecord
from slimfl.round import RoundRecord
from slimfl.runs.storage.record import DamageError, read_on
from slimfl.runs.storage.run_folder import METRICS

#: Long runs with many devices are cut to the last rounds that fit in this size.
MOST_BYTES = 1 << 25
#: Radio settings with which a message has the same threshold for all devices and rounds.
_ONE_THRESHOLD = {
    "channel", "noise_dbm", "power_dbm", "distance_m", "path_loss_exponent", "bandwidth_hz",
    "spectral_efficiency", "split", "implementation_loss_db", "accounting", "bits_per_parameter",
    "fading", "rician_k_db", "nakagami_m", "model", "rates",
}  # fmt: skip


def details_of(run: Followed) -> dict[str, Any]:
    """The last rounds: at most `POINTS`, within `MOST_BYTES` of the file."""
    record, (rounds, now) = run.record, run.published
    if record is None:
        raise RequestError(f"{run.path} cannot be shown: {now['problem']}")
    last = now["rounds"]
    first = max(last - POINTS, 0)
    while rounds.ends[last] - rounds.ends[first] > MOST_BYTES:
        first += max(1, (last - first) // 8)
    start, lines = rounds.position(first), list[RoundRecord]()
    try:
        found = read_on(run.path / METRICS, record.experiment, start)
        lines += (line for line, _ in islice(found, last - first))
    except DamageError:  # the file was just cut; the page asks again after the next round
        pass
    heat = Lines(POINTS, POINTS * DEVICES).heat(
        RunRecord(run.path, record.experiment, {}, lines, [])
    )
    return {
        "from": first,
        "heat": heat,
        "gains": [_gains(line, heat["devices"]) for line in lines],
        "thresholds": thresholds(record.experiment, record.provenance),
    }


def thresholds(experiment: Experiment, provenance: dict[str, Any]) -> list[dict[str, Any]]:
    """The threshold gain of each message; none if it is not the same for all devices.

    The sizes of the segments, from which rates may follow, are those that the run recorded.

    Nothing that a folder names is imported.
    """
    radio, widths = experiment.radio, experiment.model.widths
    if radio.model != BUILT_IN_CHANNEL or experiment.method not in method_names(widths):
        return []
    alike = experiment.population == PopulationSection() and not radio.split_for_each_device
    alike &= not radio.frequency_selective  # a gain per subcarrier
    if not alike or not set(radio.model_dump(exclude_defaults=True)) <= _ONE_THRESHOLD:
        return []
    bits = provenance.get("segment_bits", [])
    known = len(bits) == len(widths) and all(isinstance(each, float) and each > 0 for each in bits)
    if radio.rates == "by-size" and not known:
        return []
    messages = full_work(method(experiment.method, widths), len(widths)).messages
    try:
        coding = signal(radio, messages, len(widths), tuple(bits) if known else ()).coding
    except RequestError:  # an infeasible split, which no run has
        return []
    needed = coding.thresholds(noise_to_power(radio)).tolist()
    carried = [max(message) + 1 for message in messages]
    return [
        {"gain": gain, "segments": segments}
        for gain, segments in zip(needed, carried, strict=True)
        if np.isfinite(gain)
    ]


def _gains(line: RoundRecord, devices: list[int]) -> list[float | None]:
    if line.gains is None:
        return []
    known = dict(zip(line.devices, line.gains, strict=True))
    return [float(f"{known[d]:.4g}") if d in known else None for d in devices]
