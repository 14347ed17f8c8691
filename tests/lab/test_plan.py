"""Plans: what they refuse, and that the committed ones describe honest comparisons."""

import pydantic
import pytest

from lab.plan import Plan, load, merged, names


def plan(**changes):
    values = {
        "title": "t",
        "question": "q",
        "prediction": "p",
        "seeds": [100, 101],
        "late_from": 2,
        "test": "t",
        "stop": "s",
        "common": {"rounds": 3},
        "arms": {"one": {"method": "slimfl"}, "other": {"method": "sheterofl"}},
        "contrasts": [
            {
                "name": "c",
                "of": "one",
                "over": "other",
                "measure": {"width": "1.0x", "score": "late tests"},
                "role": "primary",
            }
        ],
    }
    return Plan.model_validate(values | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"seeds": [0, 1]},
        {"seeds": []},
        {"equal": {"airtime": ["one", "nobody"]}},
        {"primary_setting": "nowhere"},
        {"unknown": 1},
    ],
)
def test_a_plan_with_a_mistake_is_refused(changes):
    plan()
    with pytest.raises(pydantic.ValidationError):
        plan(**changes)


def test_later_trees_win_key_by_key():
    low, high = {"radio": {"a": 1, "b": 2}, "x": 1}, {"radio": {"b": 3}, "y": 2}
    assert merged(low, high) == {"radio": {"a": 1, "b": 3}, "x": 1, "y": 2}
    assert low == {"radio": {"a": 1, "b": 2}, "x": 1}


def test_no_two_plans_share_a_seed_and_every_plan_has_a_primary_contrast():
    """Agreement between studies is replication only if they share no partition and no gain."""
    plans = {name: load(name).plan for name in names()}
    used = [seed for each in plans.values() for seed in each.seeds]
    assert len(used) == len(set(used))
    for name, each in plans.items():
        if name != "worse-channels":  # which says that all its settings are adjusted
            assert any(contrast.role == "primary" for contrast in each.contrasts), name


@pytest.mark.parametrize("name", names())
def test_a_plan_makes_different_runs_that_reach_its_late_tests(name):
    planned = load(name)
    assert len({run.cell for run in planned.runs}) == len(planned.runs)
    for run in planned.runs:
        section = run.cell.experiment.federation
        assert planned.plan.late_from <= run.cell.rounds
        assert all(section.tests(r) for r in range(planned.plan.late_from, run.cell.rounds + 1))
