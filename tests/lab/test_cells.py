"""Cells: identified by what changes their rounds, shared between exhibits and scales."""

import hashlib
import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file

from lab.catalogue import EXHIBITS
from lab.cell import Cell, cell
from lab.scale import PAPER_ROUNDS, names, scale
from slimfl import experiment as config
from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.runs.sweeps import complete, is_complete
from tests import asking

SCALES = {name: scale(name) for name in names("reproduce")}

SYNTHETIC = {
    "data__dataset": "synthetic",
    "data__train_samples": 200,
    "data__test_samples": 50,
    "training__steps": 2,
    "federation__devices": 3,
}


def tiny(**changes):
    return Cell(asking.load(**({"rounds": 3, "threads": 1} | changes))[0])


def test_key_follows_the_numbers_and_not_the_circumstances():
    base = tiny()
    assert tiny(threads=2).key == base.key
    assert tiny(data__dir="/elsewhere").key == base.key
    assert tiny(track=("tensorboard",)).key == base.key
    others = [
        tiny(seed=1), tiny(federation__evaluate_every=2), tiny(method="vanilla-0.5x"),
        tiny(radio__noise_dbm=-45.0), tiny(training__weights=(0.3, 0.7)), tiny(data__alpha=0.1),
        tiny(engine="torch"),
    ]  # fmt: skip
    assert len({base.key, *(other.key for other in others)}) == len(others) + 1


@pytest.mark.parametrize("name", SCALES)
def test_exhibits_share_cells_and_names_tell_them_apart(name):
    size = SCALES[name]
    asked = [c for exhibit in EXHIBITS.values() for c in exhibit.cells(size)]
    distinct = set(asked)
    assert len(distinct) < len(asked)
    assert len({c.name for c in distinct}) == len(distinct)
    papers = {c for r in EXHIBITS.values() if r.name != "vanilla" for c in r.cells(size)}
    for c in papers:
        assert c.experiment.rounds == size.rounds[c.experiment.data.alpha]
    for c in distinct - papers:  # the study of Vanilla FL is shorter where runs are long
        assert c.experiment.rounds == min(100, size.rounds[c.experiment.data.alpha])


def test_seeds_see_the_same_data_and_trace_in_every_method():
    size = SCALES["smoke"]
    slim, vanilla = (cell(size, method, alpha=0.1, seed=1) for method in ("slimfl", "vanilla-1.0x"))
    assert slim.experiment.model_copy(update={"method": "vanilla-1.0x"}) == vanilla.experiment


def test_local_work_of_a_round_does_not_depend_on_the_number_of_devices():
    size = SCALES["small"]
    for devices in size.device_counts:
        steps = cell(size, alpha=1.0, seed=0, devices=devices).experiment.training.steps
        assert steps * devices == pytest.approx(10 * size.steps, rel=0.1)


def test_key_does_not_change_when_the_experiment_learns_a_new_key():
    base = tiny()

    class Later(type(base.experiment)):
        new: int = 0

    def later(**changes):
        return Cell(Later(**(base.experiment.model_dump() | changes)))

    assert later().key == base.key
    assert later(new=1).key != base.key


def test_length_is_no_part_of_a_key_unless_rounds_depend_on_it():
    base = tiny()
    for changes in (
        {"rounds": 4},
        {"federation__convergence_window": 7},
        {"federation__convergence_accuracy": 0.3},
        {"federation__checkpoint_every": 5},
    ):
        assert tiny(**changes).key == base.key, changes
    cosine = {"training__schedule": "cosine"}
    assert tiny(**cosine).key != tiny(**cosine, rounds=4).key
    stops = {"federation__stop_on_convergence": True, "rounds": 9}
    windows = [{"federation__convergence_window": rounds} for rounds in (7, 8)]
    assert tiny(**stops, **windows[0]).key != tiny(**stops, **windows[1]).key


def test_standard_reads_the_beginning_of_the_papers_runs():
    standard, paper = (
        {c for exhibit in EXHIBITS.values() for c in exhibit.cells(SCALES[name])}
        for name in ("standard", "paper")
    )
    assert standard <= paper
    assert {c.grown.rounds for c in standard | paper} == {PAPER_ROUNDS}
    seeds = {}
    for name, exhibit in EXHIBITS.items():
        for each in exhibit.cells(SCALES["standard"]):
            seeds.setdefault(name, set()).add(each.experiment.seed)
    for name in ("table3", "table7", "fig2", "fig5", "fig7"):
        assert seeds[name] == {0, 1, 2}, name
    assert seeds["fig6"] == seeds["choices"] == {0}
    devices = {c.experiment.federation.devices for c in EXHIBITS["fig6"].cells(SCALES["standard"])}
    assert devices == {10, 20, 40, 70}


@pytest.mark.parametrize("name", SCALES)
def test_the_last_round_that_is_read_is_one_that_is_tested(name):
    for rounds in SCALES[name].rounds.values():
        assert rounds % SCALES[name].evaluate_every == 0


def numbers(folder, rounds):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").open()]
    weights = load_file(folder / f"checkpoints/round-{rounds:08d}.safetensors")
    return [{k: v for k, v in line.items() if k != "seconds"} for line in lines], weights


def test_a_cell_grows_and_a_short_scale_sees_its_beginning_only(tmp_path):
    short, long = (tiny(**SYNTHETIC, rounds=rounds) for rounds in (2, 4))
    complete(short.job(tmp_path / "grown"))
    before = short.record(tmp_path / "grown")
    assert len(before.lines) == 2
    assert is_complete(short.job(tmp_path / "grown"))
    assert not is_complete(long.job(tmp_path / "grown"))
    complete(long.job(tmp_path / "grown"))
    complete(long.job(tmp_path / "at_once"))
    (lines, weights), (others, other_weights) = (
        numbers(long.folder(tmp_path / name), 4) for name in ("grown", "at_once")
    )
    assert len(lines) == 4
    assert lines == others
    for name in weights:
        np.testing.assert_array_equal(weights[name], other_weights[name])
    after = short.record(tmp_path / "grown")
    assert (after.experiment, after.lines) == (before.experiment, before.lines)
    complete(short.job(tmp_path / "grown"))  # a shorter scale cuts nothing off
    assert long.job(tmp_path / "grown").rounds_done == 4


def test_a_record_has_the_convergence_test_of_the_scale_that_reads_it(tmp_path):
    one, other = (tiny(**SYNTHETIC, federation__convergence_window=w) for w in (2, 3))
    complete(one.job(tmp_path))
    assert one.record(tmp_path).experiment.federation.convergence_window == 2
    assert other.record(tmp_path).experiment.federation.convergence_window == 3


def old_name(experiment):
    """How folders were named before runs could grow: by the hash of everything but place."""
    out = {"threads": True, "track": True, "flower": True, "data": {"dir"}}
    when_equal_was_the_default = experiment.radio.model_copy(update={"rates": RadioSection().rates})
    experiment = experiment.model_copy(update={"radio": when_equal_was_the_default})
    tree = experiment.model_dump(mode="json", exclude=out, exclude_defaults=True)
    text = json.dumps({k: v for k, v in tree.items() if v != {}}, sort_keys=True)
    words = f"{experiment.method}-{experiment.radio.channel}-alpha{experiment.data.alpha:g}"
    return f"{words}-seed{experiment.seed}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def test_names_of_old_are_the_ones_that_were_in_use():
    paper = cell(SCALES["paper"], alpha=1.0, seed=0).experiment
    assert old_name(paper) == "slimfl-poor-alpha1-seed0-820d090c92be6fb4"


def test_cells_made_before_are_found(tmp_path):
    for name, before in (("smoke", "smoke"), ("small", "small"), ("standard", "paper")):
        asked, made = (cell(SCALES[n], alpha=1.0, seed=0) for n in (name, before))
        folder = tmp_path / old_name(made.experiment)
        assert asked.folder(tmp_path).name == asked.name != folder.name
        folder.mkdir()
        (folder / "experiment.toml").write_text(config.dump(made.experiment, data_sha256=""))
        assert asked.folder(tmp_path) == folder
        assert asked.job(tmp_path).folder == folder
        assert not is_complete(asked.job(tmp_path))  # the experiment fits, and has no rounds yet
        shutil.copytree(folder, tmp_path / asked.name)
        assert asked.folder(tmp_path).name == asked.name


def test_a_folder_with_another_experiment_is_refused(tmp_path):
    one, other = tiny(), tiny(seed=1)
    folder = one.folder(tmp_path)
    folder.mkdir()
    (folder / "experiment.toml").write_text(config.dump(other.experiment, data_sha256=""))
    with pytest.raises(RequestError, match="another experiment"):
        is_complete(one.job(tmp_path))
