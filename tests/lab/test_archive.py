"""The archive: cells come out as they went in, can be resumed, and cannot do harm."""

import hashlib
import json
import lzma
import os
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file

from lab import archive, made_with
from lab.archive import CHECKPOINT, MANIFEST, find, pack, unpack
from lab.catalogue import EXHIBITS
from lab.cell import Cell
from lab.scale import scale
from slimfl.errors import RequestError
from slimfl.round import RunFolder
from slimfl.runs.sweeps import complete
from tests import asking

TINY = {
    "data__dataset": "synthetic",
    "data__train_samples": 200,
    "data__test_samples": 50,
    "threads": 1,
    "training__steps": 2,
    "federation__devices": 3,
}


def tiny(rounds, **changes):
    return Cell(asking.load(**(TINY | {"rounds": rounds} | changes))[0])


def numbers(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").open()]
    newest = sorted((folder / "checkpoints").glob("*.safetensors"))[-1]
    return [{k: v for k, v in line.items() if k != "seconds"} for line in lines], load_file(newest)


@pytest.fixture
def packed(tmp_path):
    """Two rounds of a cell, packed."""
    cell = tiny(2)
    complete(cell.job(tmp_path / "here"))
    assert pack(cell, tmp_path / "here", tmp_path / "archive").rounds == 2
    return cell, tmp_path


@pytest.mark.parametrize("method", ["slimfl", "vanilla-1.0x"])
def test_stopped_here_and_continued_elsewhere_is_never_stopped(tmp_path, method):
    short, long = (tiny(rounds, method=method) for rounds in (2, 4))
    complete(short.job(tmp_path / "here"))
    pack(short, tmp_path / "here", tmp_path / "archive")
    shutil.rmtree(tmp_path / "here")
    assert unpack(long, tmp_path / "archive", tmp_path / "elsewhere")
    assert long.job(tmp_path / "elsewhere").rounds_done == 2
    complete(long.job(tmp_path / "elsewhere"))
    complete(long.job(tmp_path / "never_stopped"))
    (lines, tensors), (others, other_tensors) = (
        numbers(long.folder(tmp_path / name)) for name in ("elsewhere", "never_stopped")
    )
    assert len(lines) == 4
    assert lines == others
    assert tensors.keys() == other_tensors.keys()
    for name in tensors:
        np.testing.assert_array_equal(tensors[name], other_tensors[name])


def test_what_is_further_is_never_overwritten(packed):
    cell, root = packed
    assert pack(cell, root / "here", root / "archive") is None  # nothing new
    before = {path: path.read_bytes() for path in (root / "archive").rglob("*") if path.is_file()}
    further = tiny(3)
    complete(further.job(root / "here"))
    assert not unpack(cell, root / "archive", root / "here")
    assert further.job(root / "here").rounds_done == 3
    complete(tiny(1).job(root / "behind"))
    assert pack(cell, root / "behind", root / "archive") is None
    assert before == {p: p.read_bytes() for p in (root / "archive").rglob("*") if p.is_file()}
    assert unpack(cell, root / "archive", root / "behind")
    assert cell.job(root / "behind").rounds_done == 2
    assert numbers(cell.folder(root / "behind"))[0] == numbers(cell.folder(root / "here"))[0][:2]
    complete(further.job(root / "behind"))
    ours, theirs = (numbers(cell.folder(root / name)) for name in ("behind", "here"))
    assert ours[0] == theirs[0]
    np.testing.assert_array_equal(ours[1]["global"], theirs[1]["global"])


def test_what_a_killed_process_left_is_removed_and_what_is_in_work_is_not(packed):
    cell, root = packed
    cache = root / "fresh"
    for name in ("killed", "at-work"):
        (cache / f".unpacking-{name}").mkdir(parents=True)
        (cache / f".unpacking-{name}" / "metrics.jsonl").write_text("x")
    (cache / ".unpacking-link").symlink_to(root / "here")
    os.utime(cache / ".unpacking-killed", (0, 0))
    assert unpack(cell, root / "archive", cache)
    left = {path.name for path in cache.glob(".unpacking-*")}
    assert left == {".unpacking-at-work", ".unpacking-link"}


def test_a_run_that_is_being_written_is_left_alone(packed):
    cell, root = packed
    complete(tiny(1).job(root / "behind"))
    with RunFolder.open(cell.folder(root / "behind")).writing():
        assert not unpack(cell, root / "archive", root / "behind")
    assert cell.job(root / "behind").rounds_done == 1


def test_a_round_without_its_checkpoint_is_not_packed(tmp_path):
    cell = tiny(3)
    complete(cell.job(tmp_path))
    (cell.folder(tmp_path) / "checkpoints/round-00000003.safetensors").unlink()
    entry = pack(cell, tmp_path, tmp_path / "archive")
    assert (entry.rounds, len(entry.lines)) == (2, 2)


def test_it_says_what_made_the_rounds(packed, monkeypatch):
    cell, root = packed
    (first,) = find(root / "archive", cell).made
    assert (first["until"], first["engine"]) == (2, made_with.engine())
    monkeypatch.setattr(made_with, "engine", lambda: "native (another)")
    further = tiny(4)
    complete(further.job(root / "here"))
    made = pack(further, root / "here", root / "archive").made
    assert [(each["until"], each["engine"]) for each in made] == [
        (2, first["engine"]),
        (4, "native (another)"),
    ]


def test_an_empty_archive_or_cache_is_no_error(tmp_path):
    assert not unpack(tiny(2), tmp_path / "none", tmp_path / "cache")
    assert pack(tiny(2), tmp_path / "cache", tmp_path / "none") is None


def rewritten(root, cell, **changes):
    path = root / "archive" / cell.name / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def refused(cell, root, words="damaged"):
    with pytest.raises(RequestError, match=words):
        unpack(cell, root / "archive", root / "fresh")
    there = list((root / "fresh").iterdir()) if (root / "fresh").exists() else []
    assert there == []


@pytest.mark.parametrize(
    "name", ["metrics.jsonl.xz", f"{CHECKPOINT}.xz", "experiment.toml", "partition.json"]
)
def test_a_changed_file_is_refused(packed, name):
    cell, root = packed
    path = root / "archive" / cell.name / name
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    for damaged in (raw, raw[: len(raw) // 2]):
        path.write_bytes(damaged)
        refused(cell, root)
    path.unlink()
    refused(cell, root)


def test_a_file_is_unpacked_up_to_a_size(packed, monkeypatch):
    cell, root = packed
    monkeypatch.setattr(archive, "MOST_BYTES", 1_000_000)
    bomb = lzma.compress(bytes(50_000_000))
    (root / "archive" / cell.name / "metrics.jsonl.xz").write_bytes(bomb)
    refused(cell, root)


def with_checksum(root, cell, name, contents):
    """A file of the archive replaced together with its checksum."""
    folder = root / "archive" / cell.name
    packed = lzma.compress(contents) if name in archive.FILTERS else contents
    (folder / (f"{name}.xz" if name in archive.FILTERS else name)).write_bytes(packed)
    files = json.loads((folder / MANIFEST).read_text())["files"]
    rewritten(root, cell, files=files | {name: hashlib.sha256(contents).hexdigest()})


def test_another_experiment_under_a_cells_name_is_refused(packed):
    """Otherwise an archive could name a factory of its own as the model, and run it."""
    cell, root = packed
    text = (root / "archive" / cell.name / "experiment.toml").read_text()
    with_checksum(root, cell, "experiment.toml", text.replace("ul-mobilenet", "os:getcwd").encode())
    refused(cell, root, "does not match its name")


@pytest.mark.parametrize("text", ["provenance = 1", "", "rounds = 2"])
def test_an_experiment_with_a_right_checksum_may_still_be_wrong(packed, text):
    cell, root = packed
    with_checksum(root, cell, "experiment.toml", text.encode())
    refused(cell, root, "experiment.toml")


def test_metrics_with_a_right_checksum_may_still_be_of_another_network(packed):
    cell, root = packed
    raw = archive.find(root / "archive", cell).read("metrics.jsonl").replace(b"0.5x", b"0.3x")
    with_checksum(root, cell, "metrics.jsonl", raw)
    refused(cell, root)


@pytest.mark.parametrize(
    "changes",
    [{"rounds": 3}, {"files": {}}, {"made": 5}, {"made": [7]}, {"made": [{"versions": "2"}]}],
    ids=str,
)
def test_a_description_that_cannot_be_true_is_refused(packed, changes):
    cell, root = packed
    rewritten(root, cell, **changes)
    refused(cell, root)


def test_a_description_that_is_none_is_refused(packed):
    cell, root = packed
    (root / "archive" / cell.name / MANIFEST).write_text("[]")
    refused(cell, root)


def test_an_archived_run_from_before_a_default_changed_is_still_the_same_run():
    """The oldest runs of table III were made when rates were equal, and do not say so."""
    cells = EXHIBITS["table3"].cells(scale("standard"))
    entries = [entry for c in cells if (entry := find(archive.ROOT / "cells", c))]
    silent = [e for e in entries if "rates" not in (e.folder / "experiment.toml").read_text()]
    assert silent
    for entry in silent:
        with entry.unpacked() as folder:
            assert folder.experiment().radio.rates == "equal"
