"""A run that was killed, damaged or out of disk space resumes to the same numbers."""

import contextlib
import json
import logging
import random
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import slimfl
from slimfl.errors import RequestError, RunError
from slimfl.round import RunFolder, completed
from tests import asking

SETTINGS = {
    "rounds": 14,
    "data__dataset": "synthetic",
    "data__train_samples": 400,
    "training__steps": 2,
    "federation__participation": 0.7,
}


def metrics(path):
    lines = [json.loads(text) for text in (path / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        del line["seconds"]
    return lines


def final_weights(path):
    newest = sorted((path / "checkpoints").glob("*.safetensors"))[-1]
    return load_file(newest)


def assert_same_run(a, b):
    assert metrics(a) == metrics(b)
    left, right = final_weights(a), final_weights(b)
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


@pytest.fixture
def command(monkeypatch):
    """Run the command in this process; returns its status."""
    from slimfl.cli import main

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["slimfl", *map(str, arguments)])
        try:
            main()
        except SystemExit as ended:
            return ended.code or 0
        return 0

    return call


@pytest.fixture(scope="module")
def never_stopped(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "whole"
    asking.run(out=path, **SETTINGS)
    return path


def partial(path, rounds, monkeypatch):
    """A run of which only the first rounds were done."""

    class Enough(Exception):
        pass

    step = slimfl.round.Simulation.step

    def limited(self):
        if self.round == rounds:
            raise Enough
        return step(self)

    with monkeypatch.context() as patch:
        patch.setattr(slimfl.round.Simulation, "step", limited)
        with pytest.raises(Enough):
            asking.run(out=path, **SETTINGS)
    return path


@pytest.mark.slow
def test_killed_at_random_moments(never_stopped, tmp_path):
    path = tmp_path / "killed"
    script = textwrap.dedent(
        f"""
        import sys, torch, slimfl, pathlib
        torch.set_num_threads(1)
        path = pathlib.Path(sys.argv[1])
        if path.exists() and (path / "experiment.toml").exists():
            slimfl.resume(path)
        else:
            slimfl.Experiment(**{asking.nested(SETTINGS)!r}).run(path)
        """
    )
    random_moments = random.Random(5)
    kills = 0
    for _ in range(6):
        child = subprocess.Popen([sys.executable, "-c", script, str(path)])
        seen = (path / "metrics.jsonl").stat().st_size if (path / "metrics.jsonl").exists() else 0
        deadline = time.monotonic() + 60
        while child.poll() is None and time.monotonic() < deadline:
            file = path / "metrics.jsonl"
            if file.exists() and file.stat().st_size > seen:
                time.sleep(random_moments.uniform(0, 0.3))
                break
            time.sleep(0.002)
        child.send_signal(signal.SIGKILL)
        kills += child.wait() == -signal.SIGKILL
    assert kills >= 2, "the run must have been killed in the middle"
    slimfl.resume(path)
    assert_same_run(path, never_stopped)


def test_a_torn_last_line_is_run_again(never_stopped, tmp_path, monkeypatch):
    path = partial(tmp_path / "torn", 5, monkeypatch)
    with (path / "metrics.jsonl").open("a") as file:
        file.write('{"round": 6, "accur')
    assert len(RunFolder.open(path).metrics()) == 5
    slimfl.resume(path)
    assert_same_run(path, never_stopped)


def test_a_line_without_its_checkpoint_is_run_again(never_stopped, tmp_path, monkeypatch):
    path = partial(tmp_path / "ahead", 5, monkeypatch)
    sorted((path / "checkpoints").glob("*.safetensors"))[-1].unlink()
    slimfl.resume(path)
    assert_same_run(path, never_stopped)


@pytest.mark.parametrize("damage", ["flipped", "truncated", "empty"])
def test_a_damaged_newest_checkpoint_gives_way_to_the_one_before(
    never_stopped, tmp_path, monkeypatch, caplog, damage
):
    path = partial(tmp_path / damage, 6, monkeypatch)
    newest = sorted((path / "checkpoints").glob("*.safetensors"))[-1]
    raw = bytearray(newest.read_bytes())
    if damage == "flipped":
        raw[-100] ^= 1
    newest.write_bytes({"flipped": raw, "truncated": raw[: len(raw) // 2], "empty": b""}[damage])
    with caplog.at_level(logging.WARNING):
        slimfl.resume(path)
    assert newest.name in caplog.text
    assert "damaged" in caplog.text
    assert_same_run(path, never_stopped)


def test_without_any_intact_checkpoint_the_run_starts_over(never_stopped, tmp_path, monkeypatch):
    path = partial(tmp_path / "none", 4, monkeypatch)
    for file in (path / "checkpoints").iterdir():
        file.write_bytes(b"gone")
    slimfl.resume(path)
    assert_same_run(path, never_stopped)


def test_a_finished_run_is_left_alone(never_stopped):
    before = (never_stopped / "metrics.jsonl").read_bytes()
    slimfl.resume(never_stopped)
    assert (never_stopped / "metrics.jsonl").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("limit_kb", [3, 40])
def test_a_full_disk_ends_with_one_sentence_and_an_intact_folder(never_stopped, tmp_path, limit_kb):
    """A limit on file size makes the kernel refuse writes in the middle of a file, as a full disk
    does: 3 kB stops a line of metrics, 40 kB a checkpoint."""
    path = tmp_path / "full"
    script = textwrap.dedent(
        f"""
        import resource, sys, torch, slimfl
        from slimfl.errors import RunError
        torch.set_num_threads(1)
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit_kb} * 1024,) * 2)
        settings = {asking.nested(SETTINGS)!r}
        if {limit_kb} == 3:
            settings["federation"]["checkpoint_every"] = 100
        try:
            slimfl.Experiment(**settings).run(sys.argv[1])
        except RunError as error:
            print(error)
            sys.exit(1)
        """
    )
    child = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=120
    )
    assert child.returncode == 1, child.stderr
    assert "disk is full" in child.stdout
    assert child.stdout.count("\n") == 1
    raw = (path / "metrics.jsonl").read_bytes()
    assert raw == b"" or raw.endswith(b"\n")
    assert not list(path.rglob("*.tmp"))
    slimfl.resume(path)
    assert metrics(path) == metrics(never_stopped)


def test_a_second_writer_is_refused(tmp_path, monkeypatch):
    path = partial(tmp_path / "busy", 2, monkeypatch)
    with RunFolder.open(path).writing(), pytest.raises(RequestError, match="another process"):
        slimfl.resume(path)


def test_a_folder_in_use_is_not_overwritten(never_stopped):
    with pytest.raises(RequestError, match="slimfl resume"):
        asking.run(out=never_stopped, **SETTINGS)


def test_other_data_than_the_run_was_made_with_is_refused(tmp_path, monkeypatch):
    from slimfl.data import synthetic

    path = partial(tmp_path / "data", 2, monkeypatch)
    with pytest.raises(RequestError, match="checksum"):
        slimfl.resume(path, dataset=synthetic(seed=1))


def test_checkpoints_hold_no_pickle_and_only_two_are_kept(never_stopped):
    files = sorted((never_stopped / "checkpoints").iterdir())
    assert [f.name for f in files] == ["round-00000013.safetensors", "round-00000014.safetensors"]


def test_a_write_error_in_the_middle_of_a_line_leaves_whole_lines(tmp_path, monkeypatch):
    import errno
    import os

    path = partial(tmp_path / "short", 3, monkeypatch)
    write = os.write

    def short(descriptor, raw):
        if raw.startswith(b'{"round": 4'):
            write(descriptor, raw[:20])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, raw)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", short)
        with pytest.raises(RunError, match="disk is full"):
            slimfl.resume(path)
    assert len((path / "metrics.jsonl").read_text().splitlines()) == 3


def copy_of(path, tmp_path):
    return Path(shutil.copytree(path, tmp_path / "copy"))


def last_checkpoint(path):
    return sorted((path / "checkpoints").glob("*.safetensors"))[-1]


class TestComplete:
    """All lines are there, but the last checkpoint is not, or not intact."""

    @pytest.mark.slow
    @pytest.mark.parametrize("damage", ["missing", "flipped"])
    @pytest.mark.parametrize("on", [None, "local"])
    def test_the_final_model_is_made_again(self, never_stopped, tmp_path, damage, on, command):
        path = copy_of(never_stopped, tmp_path)
        last = last_checkpoint(path)
        raw = bytearray(last.read_bytes())
        raw[-100] ^= 1
        last.unlink() if damage == "missing" else last.write_bytes(raw)
        options = ["--on", on] if on else []
        assert command("resume", path, "--json", *options) == 0
        assert_same_run(path, never_stopped)

    def test_with_sparse_checkpoints_more_rounds_are_run_again(self, tmp_path):
        settings = SETTINGS | {"rounds": 5, "federation__checkpoint_every": 3}
        asking.run(out=tmp_path / "whole", **settings)
        path = copy_of(tmp_path / "whole", tmp_path)
        last_checkpoint(path).unlink()
        assert last_checkpoint(path).stem == "round-00000003"
        folder = RunFolder.open(path)
        assert not completed(folder, folder.experiment())
        slimfl.resume(path)
        assert completed(folder, folder.experiment(), verify=True)
        assert_same_run(path, tmp_path / "whole")


def without(numbers):
    return lambda lines: [line for k, line in enumerate(lines, 1) if k not in numbers]


DAMAGES = {
    "a line damaged": lambda lines: [*lines[:12], b'{"round": 13, "accu', *lines[13:]],
    "a line that is no object": lambda lines: [*lines[:12], b"13", *lines[13:]],
    "the last line missing": without({14}),
    "a line missing": without({13}),
    "an early line missing": without({2}),
    "a line doubled": lambda lines: [*lines[:13], lines[12], *lines[13:]],
    "the first line doubled": lambda lines: [lines[0], *lines],
    "a round of another number": lambda lines: [
        *lines[:13], lines[13].replace(b'"round": 14', b'"round": 15')
    ],
    "nothing left": lambda lines: [],
}  # fmt: skip


class TestDamagedMetrics:
    @pytest.mark.parametrize("damage", DAMAGES)
    def test_the_run_goes_back_to_where_lines_and_checkpoint_agree(
        self, never_stopped, tmp_path, caplog, damage
    ):
        path = copy_of(never_stopped, tmp_path)
        file = path / "metrics.jsonl"
        lines = DAMAGES[damage](file.read_bytes().splitlines())
        file.write_bytes(b"".join(line + b"\n" for line in lines))
        with caplog.at_level(logging.WARNING):
            slimfl.resume(path)
        assert "starts over" in caplog.text or "continues after round 13" in caplog.text
        assert [line["round"] for line in metrics(path)] == list(range(1, 15))
        assert_same_run(path, never_stopped)

    def test_a_missing_file_starts_over(self, never_stopped, tmp_path):
        path = copy_of(never_stopped, tmp_path)
        (path / "metrics.jsonl").unlink()
        slimfl.resume(path)
        assert_same_run(path, never_stopped)

    def test_the_advice_of_the_error_works(self, never_stopped, tmp_path, command, capsys):
        path = copy_of(never_stopped, tmp_path / "with space")
        file = path / "metrics.jsonl"
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join([*lines[:4], b"?\n", *lines[5:]]))
        assert command("report", path, "--out", tmp_path / "r.html") == 2
        error = capsys.readouterr().err
        assert "line 5" in error
        advice = shlex.split(error.split("`")[1])
        assert advice[:2] == ["slimfl", "resume"]
        assert command(*advice[1:], "--json") == 0
        assert_same_run(path, never_stopped)

    def test_a_checkpoint_of_lost_rounds_does_not_come_back(
        self, never_stopped, tmp_path, monkeypatch
    ):
        """A second kill, after the run has started over, must find no checkpoint of the first."""
        path = copy_of(never_stopped, tmp_path)
        (path / "metrics.jsonl").write_bytes(b"")
        step = slimfl.round.Simulation.step

        def limited(self):
            if self.round == 3:
                raise InterruptedError
            return step(self)

        with monkeypatch.context() as patch:
            patch.setattr(slimfl.round.Simulation, "step", limited)
            with pytest.raises(InterruptedError):
                slimfl.resume(path)
        names = sorted(file.stem for file in (path / "checkpoints").iterdir())
        assert names == ["round-00000002", "round-00000003"]
        slimfl.resume(path)
        assert_same_run(path, never_stopped)


@pytest.mark.parametrize("name", [".lock", "metrics.jsonl", "run.log", "partition.json.tmp"])
def test_a_link_in_the_folder_leads_nowhere(never_stopped, tmp_path, name):
    """A folder from somebody else must not make resume write to a file outside of it."""
    path = copy_of(never_stopped, tmp_path)
    victim = tmp_path / "victim"
    before = (path / "metrics.jsonl").read_bytes() if name == "metrics.jsonl" else b"precious"
    victim.write_bytes(before)
    (path / name).unlink(missing_ok=True)
    (path / name).symlink_to(victim)
    last_checkpoint(path).write_bytes(b"damaged, which is logged, and a round is run again")
    with contextlib.suppress(RequestError):
        slimfl.resume(path)
    assert victim.read_bytes() == before


def test_what_a_kill_left_is_removed(never_stopped, tmp_path):
    path = copy_of(never_stopped, tmp_path)
    left = [
        path / ".partition.json.0123456789abcdef.tmp",
        path / "checkpoints/.round-00000009.safetensors.0123456789abcdef.tmp",
    ]
    for file in left:
        file.write_bytes(b"half")
    slimfl.resume(path)
    assert not any(file.exists() for file in left)


def test_of_many_that_make_one_folder_one_wins(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    experiments = [asking.load(seed=seed)[0] for seed in range(8)]

    def make(experiment):
        try:
            RunFolder.create(tmp_path / "run", experiment, {"data_sha256": "0"})
        except RequestError:
            return None
        return experiment.seed

    with ThreadPoolExecutor(8) as pool:
        won = [seed for seed in pool.map(make, experiments) if seed is not None]
    assert len(won) == 1
    assert RunFolder.open(tmp_path / "run").experiment().seed == won[0]
