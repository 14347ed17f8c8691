"""How a device learns: local steps, the schedule of a round, one device's training."""

from slimfl.training.cohort import CohortTrainer, cohort_key
from slimfl.training.local import Images, LocalTrainer, is_random
from slimfl.training.losses import hard_loss, soft_loss
from slimfl.training.optimiser import OptimiserState, state_shapes
from slimfl.training.schedule import (
    LocalSchedule,
    LocalWork,
    learning_rates,
    local_schedule,
    local_steps,
    planned_images,
)
from slimfl.training.steps import STEPS, Forward, Step, UpdateStep, configured_step, step

__all__ = [
    "STEPS",
    "CohortTrainer",
    "Forward",
    "Images",
    "LocalSchedule",
    "LocalTrainer",
    "LocalWork",
    "OptimiserState",
    "Step",
    "UpdateStep",
    "cohort_key",
    "configured_step",
    "hard_loss",
    "is_random",
    "learning_rates",
    "local_schedule",
    "local_steps",
    "planned_images",
    "soft_loss",
    "state_shapes",
    "step",
]
