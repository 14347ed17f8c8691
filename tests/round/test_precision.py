"""More tests near the end of a run, and the mean of its last models as a second score."""

import numpy as np
import pytest

from slimfl.errors import RequestError
from slimfl.round import Simulation, run
from tests.asking import load

TINY = {
    "method": "slimfl",
    "data__dataset": "synthetic",
    "federation__devices": 3,
    "training__steps": 2,
    "threads": 1,
}


def simulation(**changes):
    return Simulation(load(**(TINY | changes))[0])


def test_every_late_round_is_tested():
    sim = simulation(rounds=9, federation__evaluate_every=4, federation__evaluate_all_from=6)
    lines = run(sim)
    assert [line.round for line in lines if line.accuracy] == [4, 6, 7, 8, 9]


def test_more_tests_change_no_model():
    few, many = simulation(rounds=4, federation__evaluate_every=4), simulation(rounds=4)
    run(few), run(many)
    assert few.global_model.tobytes() == many.global_model.tobytes()


def test_averaged_score_is_that_of_the_mean_of_the_last_models():
    sim = simulation(rounds=5, federation__average_last=3)
    models, lines = [], []
    while sim.round < 5:
        lines.append(sim.step())
        models.append(sim.global_model.copy())
    assert [line.averaged_accuracy is None for line in lines] == [True, True, False, False, False]
    for number in (3, 4, 5):
        mean = np.mean(np.array(models[number - 3 : number], np.float64), axis=0)
        widths = sim.setting.method.evaluates()
        expected = [s.accuracy for s in sim.engine.evaluate(mean.astype(np.float32), widths)]
        assert [*lines[number - 1].averaged_accuracy.values()] == expected


def test_averaging_changes_neither_model_nor_accuracy():
    plain, averaged = simulation(rounds=4), simulation(rounds=4, federation__average_last=2)
    one, other = run(plain), run(averaged)
    assert plain.global_model.tobytes() == averaged.global_model.tobytes()
    assert [line.accuracy for line in one] == [line.accuracy for line in other]


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"federation__average_last": 11, "rounds": 10}, "federation.average_last"),
        ({"federation__evaluate_all_from": 11, "rounds": 10}, "federation.evaluate_all_from"),
    ],
)
def test_what_would_never_happen_is_refused(changes, key):
    with pytest.raises(RequestError, match=key):
        load(**(TINY | changes))
