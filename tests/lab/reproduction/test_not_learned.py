"""A network that only guesses gives no verdict on the paper's claims."""

from dataclasses import replace

import pytest

from lab.reproduction.cells.scale import scale
from lab.reproduction.exhibits.exhibit import Final, fluctuation
from lab.reproduction.judging.reasons import reason
from lab.reproduction.judging.verdict import Claim, Verdict


def ended(make_run, accuracy: float, seed: int = 0) -> Final:
    """Of hand-made runs with two classes and 10,000 test samples: a coin is right in 50 ± 1.5 %."""
    found = Final.of([make_run(curves={"1.0x": [accuracy] * 2}, seed=seed)], "1.0x", 2)
    assert found is not None
    return found


@pytest.mark.parametrize(("accuracy", "learned"), [(0.2, False), (0.515, False), (0.516, True)])
def test_guessing_is_recognised(make_run, accuracy, learned):
    assert ended(make_run, accuracy).learned is learned


def test_one_guessing_network_leaves_its_claims_undecided(make_run):
    good, bad = ended(make_run, 0.9, 0), ended(make_run, 0.5, 1)

    def claimed(*comparisons, **more):
        return Claim("text", "source", comparisons, **more)

    alone = claimed(good.compare("a", 90.0))
    assert alone.verdict is Verdict.AGREES
    for claim in (
        claimed(good.compare("a", 90.0), bad.compare("b", 50.0)),
        claimed(good.compare("a"), bad.compare("b"), order=((0, 1),)),
        claimed((good - bad).compare("gain", 40.0)),
        claimed(fluctuation("a", good), fluctuation("b", bad), order=((0, 1),)),
    ):
        assert claim.verdict is Verdict.UNDECIDED
        assert reason(claim, scale("smoke")).startswith("Not better than guessing yet: ")
    assert reason(alone, scale("smoke")) == ""


def test_a_missing_run_is_told_before_a_guessing_one(make_run):
    bad = ended(make_run, 0.5)
    open_end = Claim("text", "source", (replace(bad, finished=False).compare("b"),))
    assert open_end.verdict is Verdict.UNFINISHED
