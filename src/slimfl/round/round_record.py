"""Turns the book and the scores of a round into its typed record."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

import numpy as np
import pydantic

from slimfl.engines import Score
from slimfl.errors import RunError
from slimfl.round.clock.work_times import TRAINING_PASSES
from slimfl.round.plan import Plan
from slimfl.round.reasons import missing
from slimfl.round.round_book import RoundBook
from slimfl.round.setting import Setting
from slimfl.runs.storage.record import MOST, RoundRecord, Seconds
from slimfl.training import learning_rates, local_steps


def round_record(
    setting: Setting,
    plan: Plan,
    book: RoundBook,
    scores: Mapping[int, Score],
    averaged: Mapping[int, Score] | None,
    trained_s: float,
    clock: Mapping[str, Any],
) -> RoundRecord:
    """The record of a round.

    Args:
        setting: The setting of the run.
        plan: The plan of the round.
        book: What happened.
        scores: Test results by index of the width.
        averaged: The same of the mean of the last models; None where that is not tested.
        trained_s: When training ended, on the clock of `plan.began_s`.
        clock: The fields on virtual time and energy.
    """
    names = [f"{width}x" for width in setting.experiment.model.widths]
    losses = book.losses
    values: dict[str, Any] = {
        "round": plan.round,
        "accuracy": {names[i]: score.accuracy for i, score in scores.items()},
        **(
            {"averaged_accuracy": {names[i]: score.accuracy for i, score in averaged.items()}}
            if averaged is not None
            else {}
        ),
        "loss": {names[i]: _finite(score.loss) for i, score in scores.items()},
        # reported losses are not covered by the noise
        "training_loss": {
            names[i]: _finite(losses.mean[i])
            for i in range(len(names))
            if losses.counts[i] and setting.privacy is None
        },
        "learning_rate": _learning_rate(setting, plan.round, book.samples),
        "devices": book.devices,
        "dropped_out": book.dropped_out,
        "refused": book.refused,
        **({"clipped": book.clipped} if book.clipped else {}),
        # a channel may know none, and JSON has no NaN
        "gains": book.gains if np.isfinite(book.gains).all() else None,
        "decoded": [len(segments) for segments in book.arrived],
        "delivered": book.delivered,
        **asdict(book.ledger.total()),
        "images": book.images,
        "multiply_adds": _training_work(setting, book),
        "paper_mflops": _paper_mflops(setting, plan),
        **clock,
        **(_details(setting, plan, book, scores) if _reasons_count(setting) else {}),
        **({"privacy": setting.privacy.spent()} if setting.privacy else {}),
        "seconds": Seconds(
            training=trained_s - plan.began_s, evaluation=time.perf_counter() - trained_s
        ),
    }
    try:
        return RoundRecord(**values)
    except (
        pydantic.ValidationError
    ) as error:  # a user's own channel or network returned wrong values
        first = error.errors(include_url=False)[0]
        raise RunError(
            f"round {plan.round}: {first['loc'][0]} cannot be recorded: {first['msg']}"
        ) from None


def _reasons_count(setting: Setting) -> bool:
    """True if devices can be missing for other reasons than the channel."""
    return setting.in_detail or setting.experiment.time.mode != "wait-for-all"


def _details(
    setting: Setting, plan: Plan, book: RoundBook, scores: Mapping[int, Score]
) -> dict[str, Any]:
    """Reasons for missing devices, and accuracies per label: of interest if devices differ."""
    held = np.bincount(setting.dataset.test.labels, minlength=setting.dataset.classes).tolist()
    by_label = {
        f"{setting.experiment.model.widths[i]}x": [
            right / count if count else None
            for right, count in zip(score.correct_by_label, held, strict=False)
        ]
        for i, score in scores.items()
        if score.correct_by_label is not None
    }
    return {
        "missing": missing(plan, book.rows, book.arrived, book.refused),
        **({"label_accuracy": by_label} if by_label else {}),
    }


def _training_work(setting: Setting, book: RoundBook) -> int:
    """Multiply-adds of all local training."""
    seen = zip(book.images_by_width.tolist(), setting.multiply_adds, strict=True)
    return TRAINING_PASSES * sum(images * per_image for images, per_image in seen)


def _paper_mflops(setting: Setting, plan: Plan) -> float:
    """Table V's computation cost: one forward pass at every trained width, in millions.

    The mean over devices; summed as integers, so that equal devices give the value of one exactly.
    """
    if not plan.assignments:
        return 0.0
    costs = [sum(setting.multiply_adds[i] for i in each.widths) for each in plan.assignments]
    return sum(costs) / len(costs) / 1e6


def _learning_rate(setting: Setting, number: int, samples: Sequence[int]) -> float | None:
    """The learning rate of the round's first step; None if no device trained.

    Under `theorem1` with whole epochs it depends on the device's number of samples; this is then
    the median over devices.
    """
    training, rounds = setting.experiment.training, setting.experiment.rounds
    steps = [local_steps(training, held) for held in samples]
    first = {n: float(learning_rates(training, rounds, number, n)[0]) for n in set(steps)}
    return median(first[n] for n in steps) if steps else None


def _finite(value: float) -> float | None:
    """A loss; None if it has diverged, as JSON has no infinity and records have limits."""
    return float(value) if abs(value) <= MOST else None
