"""What happened in a round: noted while uploads pass by, then turned into a typed record."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

import numpy as np
import pydantic
from numpy.typing import NDArray

from slimfl.engines import Score
from slimfl.errors import RunError
from slimfl.radio import Links, Receptions, radio_cost
from slimfl.round.clock import TRAINING_PASSES
from slimfl.round.reasons import CLIPPED, NO_ANSWER, REFUSED, outage
from slimfl.round.setting import Setting
from slimfl.round.uploads import Upload
from slimfl.runs.storage.record import MOST, RoundRecord, Seconds
from slimfl.training import first_learning_rate


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
        self.uploads: list[Upload] = []
        """Those that came, in the order of the plan."""
        self._trained_widths: list[tuple[int, ...]] = []
        """Of every device that was given work."""

    def note(self, upload: Upload) -> None:
        """Add a device's upload behind all stages."""
        self._trained_widths.append(upload.work.widths)
        if upload.answered:
            self.uploads.append(upload)
        else:
            self.absent.append(upload.device)
            self.reasons[upload.device] = NO_ANSWER

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
        setting, uploads = self.setting, self.uploads
        names = [f"{width}x" for width in setting.experiment.model.widths]
        seen = [upload.images_seen for upload in uploads]
        by_width = np.sum([np.zeros(len(names), np.int64), *seen], axis=0)
        devices = [upload.device for upload in uploads]
        merged = [upload.arrived for upload in uploads if upload.missing != REFUSED]
        values: dict[str, Any] = {
            "round": self.number,
            "accuracy": {names[i]: score.accuracy for i, score in scores.items()},
            "loss": {names[i]: _finite(score.loss) for i, score in scores.items()},
            "training_loss": self._training_loss(names),
            "learning_rate": self._learning_rate(),
            "devices": devices,
            "dropped_out": sorted({*self.absent} - {*devices}),
            "refused": self._devices_with(REFUSED),
            "decoded": [len(upload.arrived) for upload in uploads],
            "delivered": [sum(s in each for each in merged) for s in range(len(names))],
            **self._radio_fields(),
            "images": sum(upload.work.images_trained_on(upload.images_seen) for upload in uploads),
            "multiply_adds": TRAINING_PASSES * int(by_width @ np.array(setting.multiply_adds)),
            "paper_mflops": self._paper_mflops(),
            **clock,
            "seconds": Seconds(
                training=merged_s - self.began_s, evaluation=time.perf_counter() - merged_s
            ),
        }
        if clipped := self._devices_with(CLIPPED):
            values["clipped"] = clipped
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

    def _devices_with(self, mark: str) -> list[int]:
        return sorted({upload.device for upload in self.uploads if upload.missing == mark})

    def _training_loss(self, names: list[str]) -> dict[str, float | None]:
        """The mean over the devices that trained a width; reported losses have no noise on them."""
        if self.setting.privacy is not None:
            return {}
        sums, trained = np.zeros(len(names)), np.zeros(len(names), np.int64)
        for upload in self.uploads:
            known = ~np.isnan(upload.losses)
            sums[known] += upload.losses[known]
            trained += known
        rows = zip(names, sums.tolist(), trained.tolist(), strict=True)
        return {name: _finite(total / count) for name, total, count in rows if count}

    def _radio_fields(self) -> dict[str, Any]:
        """What the radio cost, and the gains of the links."""

        def column(name: str, kind: type = np.float64) -> NDArray[Any]:
            return np.array([getattr(upload, name) for upload in self.uploads], kind)

        gains, share = column("gain"), column("slot_share")
        on_air = column("airtime_s"), column("energy_j")
        got = Receptions(
            column("decoded", np.int64), column("attempts", np.int64), *on_air, slot_share=share
        )
        link = column("device", np.int64), gains, column("noise_to_power"), column("power_dbm")
        links = Links(self.setting.experiment.seed, self.number, *link)
        signals = [upload.signal for upload in self.uploads]
        cost = radio_cost(links, signals, got, len(self.setting.sent_bits))
        # a channel may know no gains, and JSON has no NaN
        known = gains.tolist() if np.isfinite(gains).all() else None
        return {**asdict(cost), "gains": known}

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
        for upload in self.uploads:
            sent, arrived = upload.sent, upload.arrived
            if len(arrived) < len(sent):
                reasons[upload.device] = outage(sent[len(arrived)])
        reasons |= dict.fromkeys(self._devices_with(REFUSED), REFUSED)
        found: dict[str, list[int]] = {}
        for device in sorted(reasons):
            found.setdefault(reasons[device], []).append(device)
        return dict(sorted(found.items()))

    def _paper_mflops(self) -> float:
        """Table V's computation cost: one forward pass at every trained width, in millions.

        The mean over devices; summed as integers, so that equal devices give the value of one
        exactly.
        """
        per_image = self.setting.multiply_adds
        forward = [sum(per_image[width] for width in widths) for widths in self._trained_widths]
        return sum(forward) / max(len(forward), 1) / 1e6

    def _learning_rate(self) -> float | None:
        """The learning rate of the round's first step; None if no device trained.

        Under `theorem1` with whole epochs it depends on the device's number of samples; this is
        then the median over devices.
        """
        one, held = self.setting.experiment, [upload.samples for upload in self.uploads]
        first = {n: first_learning_rate(one.training, one.rounds, self.number, n) for n in {*held}}
        return median(first[n] for n in held) if held else None


def _finite(value: float) -> float | None:
    """A loss; None if it has diverged, as JSON has no infinity and records have limits."""
    return float(value) if abs(value) <= MOST else None
