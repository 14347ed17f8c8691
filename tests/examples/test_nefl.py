"""An eighth rival outside the package: one short file, named in TOML, killed and resumed."""

from pathlib import Path

import numpy as np
import pytest

from slimfl.errors import RequestError
from slimfl.experiment.naming import trusting
from slimfl.round import RunFolder, Simulation
from tests import asking
from tests.killed_runs import HOWTO, command, finished, killed_after, last_checkpoint, lines

FILE = HOWTO / "nefl.toml"


@pytest.fixture(autouse=True)
def _eighth(monkeypatch):
    monkeypatch.syspath_prepend(str(HOWTO))
    with trusting(["eighth"]):
        yield


def test_it_is_one_file_of_less_than_120_lines_that_changes_nothing_inside():
    text = (HOWTO / "eighth/nefl.py").read_text()
    assert len(text.splitlines()) < 120
    package = Path(__file__).parents[2] / "src/slimfl"
    assert not [path for path in package.rglob("*.py") if "nefl" in path.read_text().lower()]


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_bits(tmp_path):
    finished(command("run", FILE, "--out", tmp_path / "whole", trust="eighth"))
    process = command("run", FILE, "--out", tmp_path / "killed", trust="eighth")
    killed_after(process, tmp_path / "killed", 4)
    [whole], [killed] = ((tmp_path / name).glob("*/") for name in ("whole", "killed"))
    assert 3 <= RunFolder.open(killed).checkpointed_round() < 12
    finished(command("resume", killed, trust="eighth"))
    assert lines(whole) == lines(killed)
    left, right = last_checkpoint(whole), last_checkpoint(killed)
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].tobytes() == right[name].tobytes(), name


def simulation(**changes):
    return Simulation(asking.load(FILE, **changes)[0])


@pytest.mark.slow
def test_the_merge_against_a_loop_over_named_tensors():
    """Weights over all whose block holds them, normalisation over those of the very width."""
    sim = simulation()
    widths = sim.experiment.model.widths
    drawn = set()
    for _ in range(4):
        before, plan = sim.global_model.copy(), sim.plan()
        outcomes = list(sim.outcomes(plan))
        record = sim.collect(plan, iter(outcomes))
        came = []
        for row, update in enumerate(outcomes):
            [width] = plan.work[row].widths
            drawn.add((int(plan.devices.max_width[row]), width))
            if record.decoded[row]:
                came.append((width, update.parameters))
        start, private = 0, 0
        for name, parameter in sim.setting.network.named_parameters():
            for place in range(start, start + parameter.numel()):
                first = int(sim.setting.segments.segment_of[place])
                if "_norm." in name:
                    private += 1
                    own = int(name[-1])
                    mine = [v[place] for width, v in came if width == own]
                else:
                    mine = [v[place] for width, v in came if width >= first]
                expected = np.float32(np.mean(np.float64(mine))) if mine else before[place]
                assert sim.global_model[place] == pytest.approx(expected, rel=1e-6, abs=1e-9)
            start += parameter.numel()
        assert private > 0
    assert {width for cap, width in drawn if cap == 1} == {0, 1}
    assert {width for cap, width in drawn if cap == len(widths) - 1} == {2, 3, 4}


def test_another_network_than_it_was_told_of_is_refused():
    with pytest.raises(RequestError, match="give network, in_channels and classes"):
        simulation(model__name="ul-mobilenet")


def test_parts_of_blocks_are_refused():
    from slimfl.methods import Arrival, RunningMean

    sim = simulation()
    part = Arrival(sim.setting.population.device(0), sim.global_model, np.arange(7), 1.0)
    with pytest.raises(RequestError, match="merges whole blocks"):
        sim.setting.method.merge(RunningMean(sim.global_model), {}).add(part)
