"""Damaged and hostile run folders: one sentence that names the file, never a traceback."""

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import fuzz_metrics
from fuzz_cli import apart, call
from processes import slimfl

ROUNDS = 2


@pytest.fixture(autouse=True)
def quick_report():
    """The report itself, not the short page of other tests here: it is what reads the folders."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run of ten devices."""
    path = tmp_path_factory.mktemp("folders") / "run"
    request = (
        "run", "--method", "slimfl", "--rounds", ROUNDS, "--set", "data.dataset=synthetic",
        "--set", "training.steps=1", "--set", "threads=1", "--out", path,
    )  # fmt: skip
    done = slimfl(request, path.parent)
    assert done.status == 0, done
    return path / "slimfl-seed0"


@pytest.fixture
def folder(finished, tmp_path):
    return Path(shutil.copytree(finished, tmp_path / "run"))


def commands(folder):
    out = folder.parent / "report.html"
    return [("compare", folder), ("report", folder, "--out", out), ("resume", folder, "--json")]


@pytest.mark.slow
@apart
def test_hostile_metrics_are_refused_by_file_and_line(finished, tmp_path):
    assert_refused(finished, tmp_path, every=6)


@pytest.mark.torture
@apart
def test_hostile_metrics_are_refused_by_every_command(finished, tmp_path):
    assert_refused(finished, tmp_path, every=1)


def assert_refused(finished, tmp_path, every):
    """Compare all kinds of hostile metrics; report and resume every n-th."""
    raw = (finished / "metrics.jsonl").read_bytes()
    kinds = list(fuzz_metrics.lines(raw))
    assert len(kinds) >= 69
    wrong = []
    for number, (name, contents, refused) in enumerate(kinds):
        folder = Path(shutil.copytree(finished, tmp_path / str(number)))
        (folder / "metrics.jsonl").write_bytes(contents)
        for command in commands(folder)[: None if number % every == 0 else 1]:
            ended = call(*command, cwd=tmp_path)
            sentence = " of " in ended.error and "metrics.jsonl" in ended.error
            if ended.fault:
                wrong.append(f"{name}: {ended}")
            elif refused and command[0] != "resume" and (ended.status != 2 or not sentence):
                wrong.append(f"{name}: {command[0]} ended with {ended.status}: {ended.error!r}")
        shutil.rmtree(folder)
    assert not wrong, "\n".join([f"{len(wrong)} wrong", *wrong[:20]])


@pytest.mark.parametrize("name", fuzz_metrics.PARTITIONS)
@apart
def test_a_hostile_partition_is_refused_by_its_name(name, folder, tmp_path):
    (folder / "partition.json").write_bytes(fuzz_metrics.PARTITIONS[name])
    for command in commands(folder):
        ended = call(*command, cwd=tmp_path)
        assert not ended.fault, str(ended)
        assert ended.status == 2
        assert "partition.json" in ended.error


@pytest.mark.parametrize(
    "line",
    [
        "federation.devices = 1000000000",
        "federation.devices = 1000000",
        "rounds = 1000000000000",
        f"seed = {'9' * 5000}",
        "radio.noise_dbm = 1e308",
        "radio.path_loss_exponent = 500",
        f"model.options.a = {'[' * 5000}{']' * 5000}",
        f"method = '{'x' * 100_000}'",
        "method = '[/b]'",
        "provenance = 5",
        "provenance.versions = 5",
        "provenance.versions.torch = [1]",
        "provenance.data_sha256 = 1",
        "provenance.versions = {'[/b]' = '[/b]'}",
        "data.dataset = '/dev/zero'",
        "track = ['wandb']",
        "model.widths = [1e-300, 1.0]",
    ],
)
@apart
def test_a_hostile_experiment_is_refused_or_read(line, folder, tmp_path):
    import tomli_w

    from slimfl import experiment as config

    tree = config.read_toml(folder / "experiment.toml")
    dotted, value = (part.strip() for part in line.split("=", 1))
    *sections, key = dotted.split(".")
    inside = tree
    for section in sections:
        inside = inside.setdefault(section, {})
    inside[key] = "\0here"
    text = tomli_w.dumps(tree).replace('"\\u0000here"', value)
    (folder / "experiment.toml").write_text(text)
    for command in commands(folder):
        ended = call(*command, cwd=tmp_path)
        assert not ended.fault, str(ended)


@pytest.mark.parametrize("file", ["experiment.toml", "metrics.jsonl", "partition.json"])
@pytest.mark.parametrize("kind", ["fifo", "folder", "loop", "zeros", "unreadable"])
@apart
def test_what_is_no_regular_file_is_refused_at_once(file, kind, folder, tmp_path):
    path = folder / file
    path.unlink()
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(path)
        case "zeros":
            path.symlink_to("/dev/zero")
        case "unreadable":
            path.write_bytes(b"\xff\xfe\n")
    for command in commands(folder):
        ended = call(*command, cwd=tmp_path)
        assert not ended.fault, str(ended)
        # a damaged line is no other kind of file: resume cuts it off and runs its rounds again
        mends = (kind, file, command[0]) == ("unreadable", "metrics.jsonl", "resume")
        assert ended.status == (0 if mends else 2), f"{command}: {ended.out}"
