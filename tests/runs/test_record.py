"""The definition of a round's line: it accepts what runs write, and nothing else."""

import json
import os
import re
import resource
import shutil
import tracemalloc
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from typer.testing import CliRunner

from slimfl.cli.app import app
from slimfl.errors import RequestError
from slimfl.results.records import load
from slimfl.round import RunFolder, Simulation, completed, run
from slimfl.runs.storage import checkpoint as checkpoints
from slimfl.runs.storage.record import (
    DamageError,
    Position,
    RoundRecord,
    read_class_counts,
    read_intact,
    read_on,
)
from tests import asking


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A private run of three rounds, evaluated after the second and the last; devices differ."""
    (experiment,) = asking.load(
        rounds=3, threads=1, data__dataset="synthetic", data__train_samples=60,
        data__test_samples=20, data__min_samples=1, training__steps=1, federation__devices=4,
        federation__evaluate_every=2, federation__dropout=0.3, privacy__clip_norm=1.0,
        population__preset="cell",
    )  # fmt: skip
    simulation = Simulation(experiment)
    folder = RunFolder.create(
        tmp_path_factory.mktemp("record") / "run",
        simulation.experiment,
        simulation.setting.provenance(),
    )
    return run(simulation, folder), folder


def test_what_a_run_writes_is_read_back_to_the_last_digit(ran):
    lines, folder = ran
    assert folder.metrics() == lines
    assert [json.dumps(line.as_json()) for line in folder.metrics()] == [
        json.dumps(line.as_json()) for line in lines
    ]


def test_a_partition_is_bounded_whatever_the_number_of_devices(tmp_path):
    (asked,) = asking.load(federation__devices=1_000_000)
    path = tmp_path / "partition.json"
    with path.open("wb") as file:
        file.truncate(7 << 30)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RequestError, match=r"partition\.json is damaged"):
        read_class_counts(path, asked)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 500_000  # kB


def test_a_line_of_gigabytes_is_dropped_by_resume_without_being_read(ran, tmp_path):
    lines, folder = ran
    path = shutil.copytree(folder.path, tmp_path / "run")
    before = (path / "metrics.jsonl").read_bytes()
    os.truncate(path / "metrics.jsonl", 4 << 30)  # sparse, as an archive of few bytes makes it
    tracemalloc.start()
    try:
        with RunFolder.open(path).writing() as writer:
            writer.keep_until(len(lines))
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
    assert (path / "metrics.jsonl").read_bytes() == before


def test_a_cut_off_experiment_is_not_another_one(ran, tmp_path):
    _, folder = ran
    text = (folder.path / "experiment.toml").read_text()
    (tmp_path / "run").mkdir()
    whole = text.index("data_sha256") + len('data_sha256 = ""') + 64
    sections = (found.start() for found in re.finditer(r"^\[", text[:whole], re.MULTILINE))
    for end in {*range(0, whole, 97), *sections}:
        (tmp_path / "run" / "experiment.toml").write_text(text[:end])
        with pytest.raises(RequestError, match=r"experiment\.toml"):
            RunFolder.open(tmp_path / "run").experiment()


def by_command(folder):
    done = CliRunner().invoke(app, ["resume", str(folder.path)])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    "repeat",
    [lambda folder: run(Simulation(folder.experiment()), folder), by_command],
    ids=["Python", "command"],
)
def test_a_plausible_change_of_a_line_is_noticed_and_its_rounds_repeated(ran, tmp_path, repeat):
    _, folder = ran
    copy = RunFolder(Path(shutil.copytree(folder.path, tmp_path / "run")))
    load(copy.path)
    path = copy.path / "metrics.jsonl"
    whole = [json.loads(line) for line in path.open()]
    whole[1]["energy_j"] *= 2
    path.write_text("".join(json.dumps(line) + "\n" for line in whole))
    with pytest.raises(RequestError, match="changed in its first 3 lines"):
        load(copy.path)
    assert not completed(copy, copy.experiment(), verify=True)
    assert copy.checkpoint(at_most=3) is None
    repeat(copy)
    kept = [line.energy_j for line in load(copy.path).lines]
    assert kept == [line.energy_j for line in folder.metrics()]


def test_a_run_without_checksums_of_its_lines_is_read_and_resumed(ran, tmp_path):
    _, folder = ran
    copy = RunFolder(Path(shutil.copytree(folder.path, tmp_path / "run")))
    newest = copy.checkpoint()
    state = {key: value for key, value in newest.state.items() if key != checkpoints.LINES}
    checkpoints.write(copy.path / "checkpoints", replace(newest, state=state))
    assert len(load(copy.path).lines) == 3
    assert completed(copy, copy.experiment(), verify=True)


def test_a_finished_run_is_compared_with_its_checkpoint(ran, tmp_path):
    _, folder = ran
    copy = RunFolder(Path(shutil.copytree(folder.path, tmp_path / "run")))
    assert completed(copy, copy.experiment(), verify=True)
    text = (copy.path / "experiment.toml").read_text()
    (copy.path / "experiment.toml").write_text(text.replace("seed = 0", "seed = 1", 1))
    with pytest.raises(RequestError, match=r"seed was .* and is 1"):
        completed(copy, copy.experiment(), verify=True)


def test_keys_of_a_later_version_are_ignored(ran):
    """They are not even kept: a megabyte of nested brackets takes twenty in memory."""
    lines, _ = ran
    seconds = {**lines[0]["seconds"].as_json(), "later": [[]]}
    line = {**lines[0].as_json(), "later": [[], [[]]], "seconds": seconds}
    assert RoundRecord.model_validate_json(json.dumps(line)) == lines[0]


def test_the_definition_knows_every_key_that_a_run_writes(ran):
    """A new key of a round belongs into the definition; an unknown one would pass unchecked."""
    lines, _ = ran
    written = {key for line in lines for key in line.keys()}  # noqa: SIM118
    # these stand only in rounds that a callback ended, of unequal devices, or without rounds
    others = {"stopped_by", "finished_s", "cut_off_energy_j", "staleness"}
    others |= {"drained", "battery_left_j", "empty", "missing", "label_accuracy"}
    others |= {"silent", "silent_tasks", "missing_tasks"}  # only in asynchronous steps
    others |= {"clipped"}  # only if an update changed too much
    others |= {"averaged_accuracy"}  # only with federation.average_last
    assert written | others == set(RoundRecord.model_fields)


def test_the_lines_before_a_damaged_one_are_intact(ran, tmp_path):
    lines, folder = ran
    raw = (folder.path / "metrics.jsonl").read_bytes()
    first, second, third = raw.splitlines(keepends=True)
    file = tmp_path / "metrics.jsonl"
    experiment = folder.experiment()
    for bad in (b"{}\n", b"nonsense\n", third, first, second.replace(b"energy_j", b"energy")):
        file.write_bytes(first + bad + third)
        found = read_intact(file, experiment)
        assert (found.lines, found.size_bytes) == (lines[:1], len(first))
        assert f"line 2 of {file}" in (found.damage or "")
    file.write_bytes(first + second + third[:-5])
    assert read_intact(file, experiment).damage is None
    assert read_intact(file, experiment).lines == lines[:2]
    assert read_intact(tmp_path / "absent", experiment).lines == []


def test_reading_goes_on_where_it_ended(ran, tmp_path):
    """In any number of steps, with the file cut anywhere, it gives what one reading gives."""
    lines, folder = ran
    raw = (folder.path / "metrics.jsonl").read_bytes()
    file, experiment = tmp_path / "metrics.jsonl", folder.experiment()
    at, found = Position(), []
    for cut in [*range(0, len(raw), 97), len(raw)]:
        file.write_bytes(raw[:cut])
        for line, behind in read_on(file, experiment, at):
            found.append(line)
            at = behind
        assert at.size_bytes == (raw.rfind(b"\n", 0, cut) + 1)
    assert (found, at.lines) == (lines, 3)
    # what was remembered of the lines before still counts: round 2 was evaluated at two widths
    first, second, third = raw.splitlines(keepends=True)
    _, (_, after_second) = islice(read_on(file, experiment, Position()), 2)
    narrow = json.loads(third)
    del narrow["accuracy"]["0.5x"]
    file.write_bytes(first + second + json.dumps(narrow).encode() + b"\n")
    with pytest.raises(DamageError, match=r"line 3 of .* has widths that differ"):
        list(read_on(file, experiment, after_second))
