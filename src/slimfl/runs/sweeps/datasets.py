"""The runs of one process share their dataset, however it is partitioned."""

from __future__ import annotations

from functools import lru_cache

from slimfl.data import Dataset, load_section
from slimfl.experiment import DataSection, Experiment


def shared_dataset(experiment: Experiment) -> Dataset:
    """The dataset of an experiment; the last two are cached for the next runs."""
    distribution = {"partition", "alpha", "min_samples", "shards_per_device", "normalise"}
    return _load(experiment.data.model_dump_json(exclude=distribution))


@lru_cache(maxsize=2)
def _load(content: str) -> Dataset:
    return load_section(DataSection.model_validate_json(content))
