"""How a device learns: SUSTrain, SlimTrain, USTrain, one width; one local epoch."""

from slimfl.training.algorithms import ALGORITHMS, Algorithm
from slimfl.training.cohort import CohortTrainer, cohort_key
from slimfl.training.lesson import Curriculum, Lesson, learning_rates, lesson, local_steps
from slimfl.training.local import Images, LocalTrainer, is_random
from slimfl.training.losses import hard_loss, soft_loss
from slimfl.training.optimiser import OptimiserState, state_shapes

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "CohortTrainer",
    "Curriculum",
    "Images",
    "Lesson",
    "LocalTrainer",
    "OptimiserState",
    "cohort_key",
    "hard_loss",
    "is_random",
    "learning_rates",
    "lesson",
    "local_steps",
    "soft_loss",
    "state_shapes",
]
