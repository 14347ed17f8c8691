"""How a device learns: local steps, the schedule of a round, one device's training."""

from typing import TYPE_CHECKING

from slimfl.lazy import public_names

if TYPE_CHECKING:
    from slimfl.training.cohort import CohortTrainer as CohortTrainer
    from slimfl.training.cohort import cohort_key as cohort_key
    from slimfl.training.local import Images as Images
    from slimfl.training.local import LocalTrainer as LocalTrainer
    from slimfl.training.local import is_random as is_random
    from slimfl.training.schedule import LocalSchedule as LocalSchedule
    from slimfl.training.schedule import first_learning_rate as first_learning_rate
    from slimfl.training.schedule import learning_rates as learning_rates
    from slimfl.training.schedule import local_schedule as local_schedule
    from slimfl.training.schedule import local_steps as local_steps
    from slimfl.training.schedule import planned_images as planned_images
    from slimfl.training.steps import STEPS as STEPS
    from slimfl.training.steps import Forward as Forward
    from slimfl.training.steps import Step as Step
    from slimfl.training.steps import UpdateStep as UpdateStep
    from slimfl.training.steps import configured_step as configured_step
    from slimfl.training.steps import hard_loss as hard_loss
    from slimfl.training.steps import soft_loss as soft_loss
    from slimfl.training.steps import step as step
    from slimfl.training.work import OptimiserState as OptimiserState
    from slimfl.training.work import Work as Work
    from slimfl.training.work import state_shapes as state_shapes
else:
    __getattr__, __dir__, __all__ = public_names(__name__, __file__)
