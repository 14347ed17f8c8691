"""How a device learns: local steps, the schedule of a round, one device's training."""

from typing import TYPE_CHECKING

from slimfl.lazy import lazy_names

if TYPE_CHECKING:
    from slimfl.training.cohort import CohortTrainer, cohort_key
    from slimfl.training.local import Images, LocalTrainer, is_random
    from slimfl.training.losses import hard_loss, soft_loss
    from slimfl.training.optimiser_state import OptimiserState, state_shapes
    from slimfl.training.schedule import (
        LocalSchedule,
        learning_rates,
        local_schedule,
        local_steps,
        planned_images,
    )
    from slimfl.training.steps import STEPS, Forward, Step, UpdateStep, configured_step, step
    from slimfl.training.work import Work
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "slimfl.training.cohort": ["CohortTrainer", "cohort_key"],
            "slimfl.training.local": ["Images", "LocalTrainer", "is_random"],
            "slimfl.training.work": ["Work"],
            "slimfl.training.losses": ["hard_loss", "soft_loss"],
            "slimfl.training.optimiser_state": ["OptimiserState", "state_shapes"],
            "slimfl.training.schedule": [
                "LocalSchedule",
                "learning_rates",
                "local_schedule",
                "local_steps",
                "planned_images",
            ],
            "slimfl.training.steps": [
                "STEPS",
                "Forward",
                "Step",
                "UpdateStep",
                "configured_step",
                "step",
            ],
        },
    )

__all__ = [
    "STEPS",
    "CohortTrainer",
    "Forward",
    "Images",
    "LocalSchedule",
    "LocalTrainer",
    "OptimiserState",
    "Step",
    "UpdateStep",
    "Work",
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
