"""What happened in a round: collected while uploads pass by, then turned into a typed record."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

import numpy as np
import pydantic

from slimfl.engines import Score
from slimfl.errors import RunError
from slimfl.radio import Ledger, Links, Receptions, Signal
from slimfl.round.clock import TRAINING_PASSES
from slimfl.round.reasons import CLIPPED, NO_ANSWER, REFUSED, outage
from slimfl.round.setting import Setting
from slimfl.round.uploads import Upload
from slimfl.runs.storage.record import MOST, RoundRecord, Seconds
from slimfl.training import learning_rates, local_steps


class Book:
    """Collects the facts of one round and decides nothing; keeps no update.

    Args:
        setting: The setting of the run.
        number: The number of the round.
        began_s: When its work began, on the clock of `time.perf_counter`.
        absent: Devices that were asked and will not deliver.
        reasons: Why a device that was asked does not train.
    """

    def __init__(
        self,
        setting: Setting,
        number: int,
        began_s: float,
        absent: Sequence[int] = (),
        reasons: Mapping[int, str] | None = None,
    ) -> None:
        self.setting, self.number, self.began_s = setting, number, began_s
        self.absent, self.reasons = list(absent), dict(reasons or {})
        widths = len(setting.experiment.model.widths)
        self.rows: list[int] = []
        """Rows of the plan from which an update came; this and the lists below are in one order."""
        self.devices: list[int] = []
        self.signals: list[Signal] = []
        self.decoded: list[int] = []
        """Number of decoded messages of each."""
        self._radio: list[tuple[float, ...]] = []
        self.refused: list[int] = []
        self.clipped: list[int] = []
        self._samples: list[int] = []
        self._losses, self._trained = np.zeros(widths), np.zeros(widths, np.int64)
        """Sums of the losses per width, and the number of devices that trained it."""
        self._images, self._images_by_width = 0, np.zeros(widths, np.int64)
        self._forward: list[int] = []
        """Multiply-adds per image of one forward pass at every trained width, by device."""

    def note(self, upload: Upload) -> None:
        """Add a device's upload behind all stages."""
        per_image = self.setting.multiply_adds
        self._forward.append(sum(per_image[width] for width in upload.work.widths))
        if not upload.answered:
            self.absent.append(upload.device)
            self.reasons[upload.device] = NO_ANSWER
            return
        self.rows.append(upload.row)
        self.devices.append(upload.device)
        self.signals.append(upload.signal)
        self.decoded.append(upload.decoded)
        self._radio.append(
            (
                upload.gain,
                upload.noise_to_power,
                upload.power_dbm,
                upload.attempts,
                upload.airtime_s,
                upload.energy_j,
                upload.slot_share,
            )
        )
        if upload.missing == REFUSED:
            self.refused.append(upload.device)
        if upload.missing == CLIPPED:
            self.clipped.append(upload.device)
        self._samples.append(upload.samples)
        trained = ~np.isnan(upload.losses)
        self._losses[trained] += upload.losses[trained]
        self._trained += trained
        self._images += upload.work.images_trained_on(upload.images_seen)
        self._images_by_width += upload.images_seen

    @property
    def airtime_s(self) -> list[float]:
        """The time on the air of every upload."""
        return [row[4] for row in self._radio]

    @property
    def energy_j(self) -> list[float]:
        """The transmit energy of every upload."""
        return [row[5] for row in self._radio]

    @property
    def arrived(self) -> list[tuple[int, ...]]:
        """The segments that arrived of every upload."""
        pairs = zip(self.signals, self.decoded, strict=True)
        return [signal.segments_decoded(decoded) for signal, decoded in pairs]

    @property
    def sent(self) -> list[tuple[int, ...]]:
        """The segments that every upload should deliver."""
        return [signal.segments_decoded(len(signal.messages)) for signal in self.signals]

    def record(
        self,
        scores: Mapping[int, Score],
        averaged: Mapping[int, Score] | None,
        merged_s: float,
        clock: Mapping[str, Any],
    ) -> RoundRecord:
        """The record of the round.

        Args:
            scores: Test results by index of the width.
            averaged: The same of the mean of the last models; None where that is not tested.
            merged_s: When training and merging ended, on the clock of `time.perf_counter`.
            clock: The fields on virtual time and energy.
        """
        setting = self.setting
        names = [f"{width}x" for width in setting.experiment.model.widths]
        values: dict[str, Any] = {
            "round": self.number,
            "accuracy": {names[i]: score.accuracy for i, score in scores.items()},
            "loss": {names[i]: _finite(score.loss) for i, score in scores.items()},
            # reported losses are not covered by the noise
            "training_loss": {
                names[i]: _finite(self._losses[i] / count)
                for i, count in enumerate(self._trained.tolist())
                if count and setting.privacy is None
            },
            "learning_rate": self._learning_rate(),
            "devices": self.devices,
            "dropped_out": sorted({*self.absent} - {*self.devices}),
            "refused": self.refused,
            "decoded": [len(segments) for segments in self.arrived],
            "delivered": self._delivered(),
            **self._radio_fields(),
            "images": self._images,
            "multiply_adds": self._multiply_adds(),
            "paper_mflops": self._paper_mflops(),
            **clock,
            "seconds": Seconds(
                training=merged_s - self.began_s, evaluation=time.perf_counter() - merged_s
            ),
        }
        if self.clipped:
            values["clipped"] = self.clipped
        if averaged is not None:
            values["averaged_accuracy"] = {names[i]: each.accuracy for i, each in averaged.items()}
        if setting.in_detail or setting.experiment.time.mode != "wait-for-all":
            values |= self._details(names, scores)
        if setting.privacy is not None:
            values["privacy"] = setting.privacy.spent()
        try:
            return RoundRecord(**values)
        except pydantic.ValidationError as error:  # from a user's own channel or network
            first = error.errors(include_url=False)[0]
            raise RunError(
                f"round {self.number}: {first['loc'][0]} cannot be recorded: {first['msg']}"
            ) from None

    def _radio_fields(self) -> dict[str, Any]:
        """What the radio cost, and the gains of the links."""
        columns = np.array(self._radio, np.float64).reshape(-1, 7).T
        gains, ratio, power_dbm, attempts, airtime_s, energy_j, share = columns
        decoded = np.array(self.decoded, np.int64)
        got = Receptions(decoded, attempts.astype(np.int64), airtime_s, energy_j, slot_share=share)
        ids, ledger = np.array(self.devices, np.int64), Ledger(len(self._losses))
        links = Links(self.setting.experiment.seed, self.number, ids, gains, ratio, power_dbm)
        ledger.add(links, self.signals, got)
        # a channel may know no gains, and JSON has no NaN
        known = gains.tolist() if np.isfinite(gains).all() else None
        return {**asdict(ledger.total()), "gains": known}

    def _delivered(self) -> list[int]:
        """Per segment, the number of devices whose copy was merged."""
        pairs = zip(self.devices, self.arrived, strict=True)
        merged = [segments for device, segments in pairs if device not in self.refused]
        return [sum(s in segments for segments in merged) for s in range(len(self._losses))]

    def _details(self, names: list[str], scores: Mapping[int, Score]) -> dict[str, Any]:
        """Reasons for missing devices, and accuracies per label: of interest if devices differ."""
        dataset = self.setting.dataset
        held = np.bincount(dataset.test.labels, minlength=dataset.classes).tolist()
        by_label = {
            names[i]: [
                right / count if count else None
                for right, count in zip(score.correct_by_label, held, strict=False)
            ]
            for i, score in scores.items()
            if score.correct_by_label is not None
        }
        return {"missing": self._missing(), **({"label_accuracy": by_label} if by_label else {})}

    def _missing(self) -> dict[str, list[int]]:
        """Devices grouped by the reason why something of theirs is missing."""
        reasons = dict(self.reasons)
        for device, sent, arrived in zip(self.devices, self.sent, self.arrived, strict=True):
            if len(arrived) < len(sent):
                reasons[device] = outage(sent[len(arrived)])
        reasons |= dict.fromkeys(self.refused, REFUSED)
        found: dict[str, list[int]] = {}
        for device in sorted(reasons):
            found.setdefault(reasons[device], []).append(device)
        return dict(sorted(found.items()))

    def _multiply_adds(self) -> int:
        """Multiply-adds of all local training."""
        seen = zip(self._images_by_width.tolist(), self.setting.multiply_adds, strict=True)
        return TRAINING_PASSES * sum(images * per_image for images, per_image in seen)

    def _paper_mflops(self) -> float:
        """Table V's computation cost: one forward pass at every trained width, in millions.

        The mean over devices; summed as integers, so that equal devices give the value of one
        exactly.
        """
        return sum(self._forward) / max(len(self._forward), 1) / 1e6

    def _learning_rate(self) -> float | None:
        """The learning rate of the round's first step; None if no device trained.

        Under `theorem1` with whole epochs it depends on the device's number of samples; this is
        then the median over devices.
        """
        training, rounds = self.setting.experiment.training, self.setting.experiment.rounds
        steps = [local_steps(training, held) for held in self._samples]
        first = {n: float(learning_rates(training, rounds, self.number, n)[0]) for n in set(steps)}
        return median(first[n] for n in steps) if steps else None


def _finite(value: float) -> float | None:
    """A loss; None if it has diverged, as JSON has no infinity and records have limits."""
    return float(value) if abs(value) <= MOST else None
