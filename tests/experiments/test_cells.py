"""Cells: known by what changes their numbers, shared between exhibits."""

from dataclasses import replace

import pytest

from slimfl import config
from slimfl.experiments.cells import Cell, cell
from slimfl.experiments.exhibits import RECIPES
from slimfl.experiments.scale import SCALES


def tiny(**changes):
    return Cell(config.load(**({"rounds": 3, "threads": 1} | changes))[0])


def test_key_follows_the_numbers_and_not_the_circumstances():
    base = tiny()
    assert tiny(threads=2).key == base.key
    assert tiny(data__dir="/elsewhere").key == base.key
    assert tiny(track=("tensorboard",)).key == base.key
    others = [
        tiny(seed=1), tiny(rounds=4), tiny(method="vanilla-0.5x"), tiny(radio__noise_dbm=-45.0),
        tiny(training__weights=(0.3, 0.7)), tiny(data__alpha=0.1), tiny(engine="torch"),
    ]  # fmt: skip
    assert len({base.key, *(other.key for other in others)}) == len(others) + 1


@pytest.mark.parametrize("name", SCALES)
def test_exhibits_share_cells_and_names_tell_them_apart(name):
    scale = SCALES[name]
    asked = [c for recipe in RECIPES.values() for c in recipe.cells(scale)]
    distinct = set(asked)
    assert len(distinct) < len(asked)
    assert len({c.name for c in distinct}) == len(distinct)
    for c in distinct:
        assert c.experiment.rounds == scale.rounds[c.experiment.data.alpha]


def test_seeds_see_the_same_data_and_trace_in_every_method():
    scale = SCALES["smoke"]
    slim, vanilla = (
        cell(scale, method, alpha=0.1, seed=1) for method in ("slimfl", "vanilla-1.0x")
    )
    assert slim.experiment.model_copy(update={"method": "vanilla-1.0x"}) == vanilla.experiment


def test_local_work_of_a_round_does_not_depend_on_the_number_of_devices():
    scale = SCALES["small"]
    for devices in scale.device_counts:
        steps = cell(scale, alpha=1.0, seed=0, devices=devices).experiment.training.steps
        assert steps * devices == pytest.approx(10 * scale.steps, rel=0.1)


def test_every_scale_says_what_it_shortens():
    for scale in SCALES.values():
        assert str(scale.seeds) in scale.shortened
    longer = replace(SCALES["small"], steps=77)
    assert "77" in longer.shortened


def test_key_does_not_change_when_the_experiment_learns_a_new_key():
    base = tiny()

    class Later(type(base.experiment)):
        new: int = 0

    def later(**changes):
        return Cell(Later(**(base.experiment.model_dump() | changes)))

    assert later().key == base.key
    assert later(new=1).key != base.key
