"""The archive of planned runs: what goes in comes out, the same bytes each time, nothing else."""

import io
import json
import tarfile

import pytest

from lab import __main__ as commands
from lab.archive import pack_plan, stamp_of, unpack_plan
from lab.plan import load

TINY = """
title = "t"
question = "q"
prediction = "p"
seeds = [100, 101]
late_from = 1
test = "t"
stop = "s"
[common]
rounds = 1
threads = 1
[common.data]
dataset = "synthetic"
[common.training]
steps = 1
[common.federation]
devices = 2
[arms.SlimFL]
method = "slimfl"
[arms.Vanilla]
method = "vanilla-1.0x"
[[contrasts]]
name = "full width"
of = "SlimFL"
over = "Vanilla"
measure = {width = "1.0x", score = "late tests"}
role = "primary"
"""


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans/tiny.toml").write_text(TINY)
    monkeypatch.setattr("lab.plan.PLANS", tmp_path / "plans")
    monkeypatch.setattr("lab.plan._git", lambda *words: "" if words[0] == "status" else "c0ffee")
    monkeypatch.setattr("lab.archive.PLANS", tmp_path / "archive")
    monkeypatch.chdir(tmp_path)
    return load("tiny")


def lab(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["lab", "plan", *words])
    with pytest.raises(SystemExit) as end:
        commands.main(commands.app, "lab")
    assert not end.value.code


@pytest.mark.slow
def test_runs_go_into_the_archive_and_are_judged_from_it(tiny, tmp_path, monkeypatch):
    cells = tmp_path / "lab/cells"
    lab(monkeypatch, "run", "tiny", "--workers", "1")
    lab(monkeypatch, "answer", "tiny", "--results", "first")
    lab(monkeypatch, "pack", "tiny")
    packed = (tmp_path / "archive/tiny.tar.xz").read_bytes()
    pack_plan(tmp_path / "again/tiny.tar.xz", tiny.finished(cells), cells)
    assert (tmp_path / "again/tiny.tar.xz").read_bytes() == packed

    other = tmp_path / "other"
    unpack_plan(tiny.archive, [run.cell for run in tiny.runs], other)
    assert len(tiny.finished(other)) == 4
    lab(monkeypatch, "answer", "tiny", "--cache", str(other), "--results", "second")
    first, second = (
        json.loads((tmp_path / n / "tiny.json").read_text()) for n in ("first", "second")
    )
    assert first == second
    assert second["finished"] == second["planned"] == 4
    assert second["outside the plan"] == 0
    assert second["contrasts"][0]["seeds"] == 2

    # a run without its stamp is one that no plan asked for
    stamp_of(tiny.runs[0].cell, other).unlink()
    lab(monkeypatch, "answer", "tiny", "--cache", str(other), "--results", "third")
    assert json.loads((tmp_path / "third/tiny.json").read_text())["outside the plan"] == 1


def test_only_the_runs_of_the_plan_leave_the_archive(tiny, tmp_path):
    (tmp_path / "archive").mkdir()
    name = tiny.runs[0].cell.folder(tmp_path).name
    with tarfile.open(tmp_path / "archive/tiny.tar.xz", "w:xz") as tar:
        for path in (f"{name}/metrics.jsonl", "stranger/metrics.jsonl", "../escaped"):
            member = tarfile.TarInfo(path)
            member.size = 1
            tar.addfile(member, io.BytesIO(b"x"))
    cells = [run.cell for run in tiny.runs]
    unpack_plan(tiny.archive, cells, tmp_path / "cells")
    there = [p.relative_to(tmp_path / "cells").as_posix() for p in (tmp_path / "cells").rglob("*")]
    assert sorted(there) == [name, f"{name}/metrics.jsonl"]
    assert not (tmp_path / "escaped").exists()
