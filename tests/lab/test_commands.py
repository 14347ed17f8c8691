"""`python -m lab reproduce` and `study`: their answers and their exit status."""

import hashlib
import json
import lzma

import pytest

from lab import __main__ as commands
from lab.archive import MANIFEST, pack
from lab.catalogue import STUDIES
from slimfl.runs.sweeps import complete
from tests.lab.test_archive import tiny


@pytest.fixture
def lab(monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder; gives (status, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr("sys.argv", ["lab", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            commands.main(commands.app, "lab")
        said = capsys.readouterr()
        return end.value.code or 0, said.out, said.err

    return run


@pytest.fixture
def packed(monkeypatch, tmp_path):
    """An archive that holds one tiny run, which stands for all."""
    cell = tiny(2)
    monkeypatch.setattr(commands, "_every_cell", lambda *_: [cell])
    complete(cell.job(tmp_path / "cells"))
    pack(cell, tmp_path / "cells", tmp_path / "results/cells")
    return cell


@pytest.mark.parametrize("words", [["table5"], ["make", "table5"]])
def test_without_a_command_it_makes(lab, words, tmp_path):
    status, out, _ = (
        lab("reproduce", "--json", *words)
        if words[0] != "make"
        else lab("reproduce", *words, "--json")
    )
    assert status == 0
    document = json.loads(out)
    assert [each["name"] for each in document["questions"]] == ["table5"]
    assert (tmp_path / "reproduction/table5-smoke/tables/claims.md").is_file()


def test_an_unknown_word_is_an_exhibit_that_is_not_there(lab):
    status, _, err = lab("reproduce", "stats")
    assert status == 2
    assert "there is no stats; choose among table1" in err


def test_status_of_nothing_and_as_json(lab):
    status, out, _ = lab("reproduce", "status", "table3", "--json")
    document = json.loads(out)
    assert status == 0
    assert (document["scale"], document["runs"], document["finished"]) == ("standard", 54, 0)
    assert (document["rounds"], document["rounds_done"]) == (18 * (150 + 80 + 80), 0)
    status, out, _ = lab("reproduce", "status", "table3")
    assert "0 of 54 runs of standard are finished" in out
    assert "unknown until a run has been timed" in " ".join(out.split())


def test_pack_says_what_it_packed_and_how_large_the_archive_is(lab, packed, tmp_path):
    status, out, _ = lab("reproduce", "pack", "--cache", "cells", "--archive", "new", "--json")
    document = json.loads(out)
    assert status == 0
    assert document["packed"] == {packed.name: 2}
    size = sum(path.stat().st_size for path in (tmp_path / "new").rglob("*") if path.is_file())
    assert document["megabytes"] == pytest.approx(size / 1e6)
    status, out, _ = lab("reproduce", "pack", "--cache", "cells", "--archive", "new")
    assert out.startswith("0 packed; new has 1 runs in")


def test_pack_without_runs_says_what_to_give(lab):
    status, _, err = lab("reproduce", "pack")
    assert status == 2
    assert "--cache" in err
    assert len(err.splitlines()) == 1


def test_verify_is_content_with_what_was_packed(lab, packed):
    status, out, _ = lab("reproduce", "verify")
    assert status == 0
    assert out.split() == f"{packed.name}: same in 2 rounds, bit for bit".split()


def test_verify_of_a_forged_archive_fails_with_cell_round_and_field(lab, packed, tmp_path):
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
    status, out, err = lab("reproduce", "verify", "--json")
    assert status == 1
    assert f"{packed.name}, round 2, accuracy.1.0x: " in err
    assert json.loads(out)["cells"][0]["difference"].startswith("round 2, accuracy.1.0x")
    assert "Traceback" not in err


def test_a_study_without_runs_answers_with_what_lacks(lab, tmp_path):
    status, out, err = lab("study", "widths", "--as-is", "--json")
    assert status == 0
    document = json.loads(out)
    assert [each["name"] for each in document["questions"]] == ["widths"]
    assert len(document["missing"]) == document["runs"] > 0
    assert f"0 of {document['runs']} runs are finished" in err
    page = (tmp_path / "studies/widths-smoke/index.html").read_text()
    assert "runs are finished" in page


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["rivls"], "choose among regimes, rivals"),
        (["rivals", "--scale", "big"], "choose one of smoke, standard"),
        (["status", "nothing"], "choose among regimes, rivals"),
        (["pack"], "give the folder of the runs with --cache"),
    ],
)
def test_a_wrong_word_is_told_with_the_right_ones(lab, words, told):
    status, out, err = lab("study", *words)
    assert (status, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1


def test_the_status_counts_every_run_once(lab):
    _, out, _ = lab("study", "status", "--json", "--scale", "smoke")
    cells = [cell["name"] for cell in json.loads(out)["cells"]]
    assert len(cells) == len(set(cells))
    _, out, _ = lab("study", "status", "widths", "--json", "--scale", "smoke")
    assert {cell["name"] for cell in json.loads(out)["cells"]} <= set(cells)
    assert len(STUDIES) == 5


def test_verify_without_an_archive_says_what_to_give(lab):
    status, _, err = lab("reproduce", "verify")
    assert status == 2
    assert "--archive" in err
