"""A stranger's files on the command line: nothing that they name is imported or called."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import tomli_w

import slimfl
from slimfl.errors import RequestError
from slimfl.experiment import build, dump
from tests import asking
from tests.cli.conftest import NETWORKS

SMALL = {
    "rounds": 2,
    "data": {"dataset": "synthetic", "train_samples": 300},
    "training": {"steps": 2},
    "federation": {"devices": 2},
}


def experiment(name, options=None):
    return {**SMALL, "model": {"name": name, "options": options or {}}}


def stranger(path, name, options=None):
    """A run folder as a stranger sends it: begun, to be resumed."""
    small = {"data__dataset": "synthetic", "training__steps": 2, "federation__devices": 2}
    asking.run(out=path, rounds=2, **small)
    text = (path / "experiment.toml").read_text()
    changed = build(experiment(name, options))
    (path / "experiment.toml").write_text(dump(changed, **slimfl.load(path).provenance))
    assert text != (path / "experiment.toml").read_text()
    first = (path / "metrics.jsonl").read_text().splitlines(keepends=True)[0]
    (path / "metrics.jsonl").write_text(first)
    return path


def refused(answer, *words):
    status, out, error = answer
    assert (status, out) == (2, "")
    assert error.count("\n") == 1
    for word in words:
        assert word in error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "key"),
    [("os:system", "command"), ("os:popen", "cmd"), ("subprocess:getoutput", "cmd")],
)
def test_shell_commands_in_a_strangers_files_are_not_run(here, tmp_path, name, key):
    trace = tmp_path / "trace"
    options = {key: f"touch {trace}"}
    folder = stranger(tmp_path / "hostile", name, options)
    module = name.partition(":")[0]
    refused(here("resume", folder), name)
    refused(here("resume", folder, "--trust", module), name)
    refused(here("resume", folder, "--on", "local"), name)
    refused(here("run", folder / "experiment.toml"), name)
    refused(here("run", folder / "experiment.toml", "--trust", module), name)
    refused(here("run", "--set", f"model.name={name}", "--set", f"model.options.{key}='id'"), name)
    refused(here("cost", name), name)
    assert not trace.exists()


def test_a_module_that_a_file_names_is_not_imported(here, marker, tmp_path):
    folder = stranger(tmp_path / "hostile", "shared.networks:small")
    for command in (("resume", folder), ("run", folder / "experiment.toml")):
        refused(here(*command), "add --trust shared.networks ")
        refused(here(*command, "--trust", "shared.network"), "add --trust shared.networks ")
        refused(here(*command, "--trust", "sha red"), "--trust takes")
    with pytest.raises(RequestError, match="--trust"):
        slimfl.resume(folder)
    with pytest.raises(RequestError, match="--trust"):
        asking.run(folder / "experiment.toml")
    assert not marker.exists()


def test_reading_a_folder_imports_nothing_that_it_names(here, marker, tmp_path):
    folder = stranger(tmp_path / "hostile", "shared.networks:small")
    tree = build(experiment("shared.networks:small")).model_dump(mode="json", exclude_none=True)
    tree["method"] = "shared.networks:small"
    tree["data"]["dataset"] = "shared.networks:small"
    own = {kind: {"name": "shared.networks:small", "fingerprint": "x"} for kind in
           ("network", "dataset", "channel", "method")}  # fmt: skip
    tree["provenance"] = {**slimfl.load(folder).provenance, "own": own}
    (folder / "experiment.toml").write_text(tomli_w.dumps(tree))
    for command in ("report", "compare"):
        status, _, error = here(command, folder, "--json")
        assert status == 0, error
    assert not marker.exists()


@pytest.mark.slow
@pytest.mark.parametrize("place", [(), ("--on", "local")], ids=["here", "workers"])
def test_a_trusted_module_is_used_here_and_in_workers_and_leaves_no_trace(
    here, marker, tmp_path, place
):
    """Trust travels with the processes, not with the folder: resume asks again."""
    (tmp_path / "mine.toml").write_text(tomli_w.dumps(experiment("shared.networks:small")))
    status, _, error = here(
        "run", tmp_path / "mine.toml", "--trust", "shared", *place, "--out", "group"
    )
    assert status == 0, error
    imports = marker.read_text().count("imported")
    assert imports == 1 if not place else imports > 1
    for file in (tmp_path / "group").rglob("*"):
        if file.is_file() and file.suffix in (".toml", ".json", ".jsonl", ".log"):
            assert "trust" not in file.read_text().lower()
    folder = tmp_path / "group" / "slimfl-seed0"
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 2
    shutil.rmtree(folder / "checkpoints")
    (folder / "metrics.jsonl").write_text("")
    refused(here("resume", folder, *place), "--trust shared.networks")
    status, _, error = here("resume", folder, "--trust", "shared.networks", *place)
    assert status == 0, error


#: Modules that PyTorch, Rich, Ray and Python itself look for, in a stranger's folder.
DECOYS = ("colorama", "triton", "z3", "opt_einsum", "usercustomize", "multiprocessing", "pickle")


@pytest.mark.parametrize(
    "place",
    [
        (),
        ("--on", "local"),
        pytest.param(("--on", "ray"), marks=pytest.mark.slow),
        pytest.param(("--engine", "flower"), marks=[pytest.mark.slow, pytest.mark.torture]),
    ],
    ids=["here", "workers", "ray", "flower"],
)
def test_the_installed_command_finds_only_trusted_modules_in_the_current_folder(tmp_path, place):
    if "ray" in place or "flower" in place:
        pytest.importorskip("ray")
    for decoy in DECOYS:
        trap = f"from pathlib import Path\nPath({str(tmp_path)!r}, 'ran-{decoy}').touch()\n"
        (tmp_path / f"{decoy}.py").write_text(trap)
    code = textwrap.dedent(NETWORKS.format(marker=str(tmp_path / "marker")))
    (tmp_path / "mylab").mkdir()
    (tmp_path / "mylab" / "networks.py").write_text(code)
    (tmp_path / "mine.toml").write_text(tomli_w.dumps(experiment("mylab.networks:small")))
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SLIMFL_TRUST")}

    def command(*options):
        script = Path(sys.executable).with_name("slimfl")
        request = [script, "run", "mine.toml", "--method", "slimfl", "--out", "out", *options]
        return subprocess.run(
            request, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )

    refusal = command(*place)
    assert refusal.returncode == 2
    assert "add --trust mylab.networks" in refusal.stderr
    assert not (tmp_path / "marker").exists()
    done = command("--trust", "mylab", *place)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "out/slimfl-seed0/metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["dropped_out"] for line in lines] == [[]] * SMALL["rounds"]
    assert not list(tmp_path.glob("ran-*"))


def test_a_name_that_the_user_typed_needs_no_trust(here, marker):
    small = [f"--set={key}" for key in (
        "rounds=1", "data.dataset=synthetic", "training.steps=1", "federation.devices=2",
    )]  # fmt: skip
    name = "shared.networks:small"
    assert here("cost", name)[0] == 0
    for typed in (f"--set=model.name={name}", f"--set=model.name=ul-mobilenet,{name}"):
        shutil.rmtree("group", ignore_errors=True)
        status, _, error = here("run", "--method=slimfl", *small, typed, "--out", "group")
        assert status == 0, error
    values = {"rounds": 1, "data__dataset": "synthetic", "training__steps": 1}
    run = asking.run(model__name=name, trust=["shared"], **values)  # in Python, it is said
    assert run.experiment.model.name == name
    assert "SLIMFL_TRUST" not in os.environ


def test_python_trusts_for_a_run_or_for_good(here, marker, tmp_path, monkeypatch):
    (tmp_path / "mine.toml").write_text(tomli_w.dumps(experiment("shared.networks:small")))
    asking.run(tmp_path / "mine.toml", trust=["shared"])
    asking.run(tmp_path / "mine.toml", trust="shared.networks")
    with pytest.raises(RequestError, match="--trust"):
        asking.run(tmp_path / "mine.toml")
    monkeypatch.setenv("SLIMFL_TRUST", "")
    slimfl.trust("shared")
    asking.run(tmp_path / "mine.toml", out=tmp_path / "run")
    slimfl.resume(tmp_path / "run")
