"""The runs of one process share their dataset, however it is distributed over devices."""

from __future__ import annotations

from functools import lru_cache

from slimfl.config import DataSection, Experiment
from slimfl.data import Dataset
from slimfl.federation.simulation import load_dataset


def shared_dataset(experiment: Experiment) -> Dataset:
    """The dataset of an experiment; the last two stay in memory for the next runs."""
    content = experiment.data.model_dump(
        include={"dataset", "dir", "train_samples", "test_samples"}
    )
    return _load(DataSection(**content))


@lru_cache(maxsize=2)
def _load(section: DataSection) -> Dataset:
    return load_dataset(Experiment(data=section))
