"""The archive: cells come out as they went in, can be resumed, and cannot do harm."""

import hashlib
import json
import lzma
import shutil
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file

from lab import archive, made_with
from lab.archive import CHECKPOINT, LIMITS, MANIFEST, find, pack, unpack
from lab.cell import Cell
from slimfl.errors import RequestError
from slimfl.round import RunFolder
from slimfl.runs.storage import checkpoint as checkpoints
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


def test_rounds_with_gains_of_another_processor_are_not_claimed_as_made_here(tmp_path):
    cell = tiny(3)
    complete(cell.job(tmp_path))
    path = cell.folder(tmp_path) / "metrics.jsonl"
    lines = [json.loads(line) for line in path.open()]
    lines[1]["gains"][0] = float(np.nextafter(lines[1]["gains"][0], 9))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    folder = cell.folder(tmp_path)
    whole = checkpoints.newest(folder / "checkpoints")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    state = {**whole.state, checkpoints.LINES: digest}
    checkpoints.write(folder / "checkpoints", replace(whole, state=state))
    made = pack(cell, tmp_path, tmp_path / "archive").made
    assert [(each["until"], each["engine"]) for each in made] == [
        (2, "unknown"),
        (3, made_with.engine()),
    ]


def test_an_empty_archive_or_cache_is_no_error(tmp_path):
    assert not unpack(tiny(2), tmp_path / "none", tmp_path / "cache")
    assert pack(tiny(2), tmp_path / "cache", tmp_path / "none") is None


def rewritten(root, cell, **changes):
    path = root / "archive" / cell.name / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def refused(cell, root, words):
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
    path.write_bytes(raw)
    refused(cell, root, "damaged")
    path.write_bytes(raw[: len(raw) // 2])
    refused(cell, root, "damaged")
    path.unlink()
    refused(cell, root, "not a plain file")


def test_names_in_the_archive_lead_nowhere(packed, tmp_path):
    cell, root = packed
    manifest = json.loads((root / "archive" / cell.name / MANIFEST).read_text())
    files = manifest["files"] | {"../../escaped": hashlib.sha256(b"x").hexdigest()}
    rewritten(root, cell, files=files)
    assert unpack(cell, root / "archive", root / "fresh")
    names = {p.name for p in (root / "fresh" / cell.name).rglob("*")}
    assert names == {"experiment.toml", "partition.json", "metrics.jsonl", "checkpoints",
                     "round-00000002.safetensors"}  # fmt: skip
    assert not (tmp_path / "escaped").exists()


def test_a_link_is_not_followed(packed):
    cell, root = packed
    path = root / "archive" / cell.name / "partition.json"
    path.rename(root / "elsewhere.json")
    path.symlink_to(root / "elsewhere.json")
    refused(cell, root, "not a plain file")


def test_a_bomb_is_refused_before_it_is_unpacked_whole(packed, monkeypatch):
    cell, root = packed
    monkeypatch.setitem(LIMITS, "metrics.jsonl", 1_000_000)
    bomb = lzma.compress(bytes(50_000_000))
    assert len(bomb) < 100_000
    (root / "archive" / cell.name / "metrics.jsonl.xz").write_bytes(bomb)
    refused(cell, root, "larger than")


def test_another_experiment_under_a_cells_name_is_refused(packed):
    """Otherwise an archive could name a factory of its own as the model, and run it."""
    cell, root = packed
    folder = root / "archive" / cell.name
    text = (folder / "experiment.toml").read_text().replace("ul-mobilenet", "os:getcwd")
    (folder / "experiment.toml").write_text(text)
    files = json.loads((folder / MANIFEST).read_text())["files"]
    digest = hashlib.sha256(text.encode()).hexdigest()
    rewritten(root, cell, files=files | {"experiment.toml": digest})
    refused(cell, root, "does not match its name")


@pytest.mark.parametrize(
    "changes",
    [
        {"rounds": 3},
        {"rounds": -1},
        {"rounds": "2"},
        {"rounds": 10**9},
        {"rounds": 10**18},
        {"files": {}},
        {"files": []},
        {"made": 5},
        {"made": []},
        {"made": [5]},
        {"made": {"a": 1}},
        {"made": [{"until": 2, "engine": "", "weights": "", "gains": "", "versions": ["torch"]}]},
        {"made": [{"until": 2, "engine": "", "weights": "", "gains": "", "versions": "torch"}]},
        {"made": [{"until": "2", "engine": "", "weights": "", "gains": "", "versions": {}}]},
        {"format": 9},
        {"format": "1"},
    ],
    ids=str,
)
def test_a_description_that_cannot_be_true_is_refused(packed, changes):
    cell, root = packed
    rewritten(root, cell, **changes)
    refused(cell, root, "damaged|format 9")


NESTED = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    "text", [NESTED, f'{{"format": {NESTED}}}', "[]", "1", "\ud800", "", "9" * 5000], ids=range(7)
)
def test_a_description_that_is_none_is_refused(packed, text):
    cell, root = packed
    path = root / "archive" / cell.name / MANIFEST
    path.write_bytes(text.encode(errors="surrogatepass"))
    refused(cell, root, "damaged")


@pytest.mark.parametrize(
    "text", [f"a = {NESTED}", "provenance = 1", "", "rounds = 2"], ids=["nested", "odd", "", "cut"]
)
def test_an_experiment_with_a_right_checksum_may_still_be_wrong(packed, text):
    cell, root = packed
    folder = root / "archive" / cell.name
    (folder / "experiment.toml").write_text(text)
    files = json.loads((folder / MANIFEST).read_text())["files"]
    digest = hashlib.sha256(text.encode()).hexdigest()
    rewritten(root, cell, files=files | {"experiment.toml": digest})
    refused(cell, root, "damaged")


def test_metrics_with_a_right_checksum_may_still_be_of_another_network(packed):
    cell, root = packed
    folder = root / "archive" / cell.name
    whole = lzma.decompress((folder / "metrics.jsonl.xz").read_bytes())
    lines = [json.loads(raw) for raw in whole.splitlines()]
    lines[1]["accuracy"] = {"0.3x": 0.5}
    raw = "".join(json.dumps(line) + "\n" for line in lines).encode()
    (folder / "metrics.jsonl.xz").write_bytes(lzma.compress(raw))
    files = json.loads((folder / MANIFEST).read_text())["files"]
    rewritten(root, cell, files=files | {"metrics.jsonl": hashlib.sha256(raw).hexdigest()})
    refused(cell, root, "damaged")


def test_only_known_files_are_read():
    assert set(archive.FILES) < set(LIMITS)
