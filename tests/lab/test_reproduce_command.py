"""`python -m lab reproduce`: its commands, their answers and their exit status."""

import hashlib
import json
import lzma

import pytest

from lab.reproduction import reproduce
from lab.reproduction.cells.archive import MANIFEST, pack
from slimfl.cli import main
from slimfl.runs.sweeps import complete
from tests.lab.reproduction.test_archive import tiny


@pytest.fixture
def slimfl(monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder; gives (status, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr("sys.argv", ["slimfl", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        return end.value.code or 0, said.out, said.err

    return run


@pytest.fixture
def packed(monkeypatch, tmp_path):
    """An archive that holds one tiny run, which stands for all."""
    cell = tiny(2)
    monkeypatch.setattr(reproduce, "every_cell", lambda scale: [cell])
    complete(cell.job(tmp_path / "cells"))
    pack(cell, tmp_path / "cells", tmp_path / "results/cells")
    return cell


@pytest.mark.parametrize("words", [["table5"], ["make", "table5"]])
def test_without_a_command_it_makes(slimfl, words, tmp_path):
    status, out, _ = (
        slimfl("reproduce", "--json", *words)
        if words[0] != "make"
        else slimfl("reproduce", *words, "--json")
    )
    assert status == 0
    document = json.loads(out)
    assert [each["name"] for each in document["exhibits"]] == ["table5"]
    assert (tmp_path / "reproduction/smoke/tables/verdicts.md").is_file()


def test_an_unknown_word_is_an_exhibit_that_is_not_there(slimfl):
    status, _, err = slimfl("reproduce", "stats")
    assert status == 2
    assert "there is no stats in the paper" in err


def test_status_of_nothing_and_as_json(slimfl):
    status, out, _ = slimfl("reproduce", "status", "table3", "--json")
    document = json.loads(out)
    assert status == 0
    assert (document["scale"], document["runs"], document["finished"]) == ("standard", 54, 0)
    assert (document["rounds"], document["rounds_done"]) == (18 * (150 + 80 + 80), 0)
    status, out, _ = slimfl("reproduce", "status", "table3")
    assert "0 of 54 runs of standard are finished" in out
    assert "unknown until a run has been timed" in " ".join(out.split())


def test_pack_says_what_it_packed_and_how_large_the_archive_is(slimfl, packed, tmp_path):
    status, out, _ = slimfl("reproduce", "pack", "--cache", "cells", "--archive", "new", "--json")
    document = json.loads(out)
    assert status == 0
    assert document["packed"] == {packed.name: 2}
    size = sum(path.stat().st_size for path in (tmp_path / "new").rglob("*") if path.is_file())
    assert document["megabytes"] == pytest.approx(size / 1e6)
    status, out, _ = slimfl("reproduce", "pack", "--cache", "cells", "--archive", "new")
    assert out.startswith("0 packed; new has 1 run in")


def test_pack_without_runs_says_what_to_give(slimfl):
    status, _, err = slimfl("reproduce", "pack")
    assert status == 2
    assert "--cache" in err
    assert len(err.splitlines()) == 1


def test_verify_is_content_with_what_was_packed(slimfl, packed):
    status, out, _ = slimfl("reproduce", "verify")
    assert status == 0
    assert out.split() == f"{packed.name}: same in 2 rounds, bit for bit".split()


def test_verify_of_a_forged_archive_fails_with_cell_round_and_field(slimfl, packed, tmp_path):
    """Metrics changed with their checksum."""
    folder = tmp_path / "results/cells" / packed.name
    lines = [
        json.loads(line)
        for line in lzma.decompress((folder / "metrics.jsonl.xz").read_bytes()).splitlines()
    ]
    lines[1]["accuracy"]["1.0x"] += 0.02
    raw = "".join(json.dumps(line) + "\n" for line in lines).encode()
    (folder / "metrics.jsonl.xz").write_bytes(lzma.compress(raw))
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["files"]["metrics.jsonl"] = hashlib.sha256(raw).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(manifest))
    status, out, err = slimfl("reproduce", "verify", "--json")
    assert status == 1
    assert f"{packed.name}, round 2, accuracy.1.0x: " in err
    assert json.loads(out)["cells"][0]["difference"].startswith("round 2, accuracy.1.0x")
    assert "Traceback" not in err


def test_verify_without_an_archive_says_what_to_give(slimfl):
    status, _, err = slimfl("reproduce", "verify")
    assert status == 2
    assert "--archive" in err
