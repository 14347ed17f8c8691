"""`slimfl export` and `slimfl pick` on the command line, also on a stranger's folders."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from slimfl.experiment import build, dump
from tests import asking

SMALL = {
    "data__dataset": "synthetic",
    "data__train_samples": 300,
    "rounds": 2,
    "threads": 1,
    "training__steps": 4,
    "federation__devices": 2,
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return asking.run(out=tmp_path_factory.mktemp("runs") / "run", **SMALL)


def refused(answer, *words):
    status, out, error = answer
    assert (status, out) == (2, ""), (status, out, error)
    assert error.count("\n") == 1
    for word in words:
        assert word in error


def test_weights_are_exported_and_described(here, finished):
    status, out, error = here("export", finished.folder, "--format", "safetensors", "--json",
                              "--out", "half", "--width", "0.5")  # fmt: skip
    assert status == 0, error
    document = json.loads(out)
    (model,) = document["manifest"]["models"]
    assert model["accuracy"] == finished.final_accuracy["0.5x"]
    assert document["folder"] == "half"
    assert json.loads(Path("half/manifest.json").read_text()) == document["manifest"]
    assert "1,530" in Path("half/README.md").read_text()


def test_onnx_with_int8_prints_the_loss(here, finished):
    pytest.importorskip("onnxscript")
    status, out, error = here("export", finished.folder, "--int8", "--out", "all", "--measure")
    assert status == 0, error
    assert "0.5x int8" in out
    assert max(map(len, out.splitlines())) <= 80
    models = json.loads(Path("all/manifest.json").read_text())["models"]
    for model in models:
        if model["precision"] == "int8":
            assert f"{model['accuracy_loss_points']:.2f}" in out
    assert "Traceback" not in error
    status, out, error = here("pick", "all", "--max-macs", "2e5", "--json")
    assert status == 0, error
    document = json.loads(out)
    assert document["picked"]["width"] == 0.5
    assert len(document["choices"]) == 4
    assert document["latency_runtime"] == "ONNX Runtime"
    assert here("pick", "all", "--max-latency-ms", "1e4")[0] == 0
    refused(here("pick", "all", "--max-macs", "1e6", "--energy", "horowitz-45nm"), "--energy")


def test_a_width_is_picked_from_a_run(here, finished, tmp_path):
    half, full = finished.final_accuracy["0.5x"], finished.final_accuracy["1.0x"]
    status, out, error = here("pick", finished.folder, "--min-accuracy", min(half, full) / 2)
    assert status == 0, error
    assert out.startswith("ul-mobilenet-0.5x needs the least energy")
    assert "preset horowitz-45nm" in " ".join(out.split())
    answer = here("pick", finished.folder, "--max-energy-j", "1e-6", "--json", "--plot", "p.svg")
    document = json.loads(answer[1])
    assert document["picked"]["width"] == 0.5
    assert document["choices"][1]["broken"]
    assert "horowitz-45nm" in Path("p.svg").read_text()
    answer = here("pick", finished.folder, "--max-latency-ms", "1e5", "--json")
    assert all(one["latency_ms"] > 0 for one in json.loads(answer[1])["choices"])
    refused(here("pick", finished.folder, "--max-macs", "5"), "multiply-adds exceed 5")


def test_wrong_requests_end_with_one_sentence(here, finished, tmp_path):
    run = finished.folder
    refused(here("export", run, "--width", "0.75"), "no width 0.75")
    refused(here("export", run, "--width", "half"), "--width")
    refused(here("export", run, "--width", "nan"), "no width nan")
    refused(here("export", run, "--format", "pickle"), "no format 'pickle'")
    refused(here("export", run, "--format", ""), "no format")
    refused(here("export", run, "--format", "safetensors", "--int8"), "int8")
    refused(here("export", run, "--energy", "none"), "no energy preset 'none'")
    refused(here("export", run, "--energy", "kappa-1e-28"), "--macs-per-s")
    refused(here("export", tmp_path / "nothing"), "not a run folder")
    refused(
        here("export", run, "--format", "safetensors", "--out", "/dev/null/x"), "cannot be written"
    )
    refused(here("pick", run), "at least one limit")
    refused(here("pick", run, "--min-accuracy", "70"), "from 0 to 1")
    refused(here("pick", run, "--max-macs", "nan"), "--max-macs")
    refused(here("pick", run, "--max-macs", "1e9", "--plot", "x.gif"), ".svg")
    refused(here("pick", tmp_path / "nothing", "--max-macs", "1"), "not a run folder")
    bare = shutil.copytree(run, tmp_path / "bare")
    shutil.rmtree(bare / "checkpoints")
    refused(here("export", bare, "--format", "safetensors"), "no intact checkpoint")
    assert not (run / "export").exists()


def test_the_code_that_a_folder_names_runs_only_if_trusted(here, marker, tmp_path):
    name = "shared.networks:small"
    trusted = {"trust": [name.partition(":")[0]]}
    finished = asking.run(out=tmp_path / "run", model__name=name, **SMALL, **trusted)
    marker.unlink()
    for module in ("shared", "shared.networks"):
        sys.modules.pop(module)
    refused(here("export", finished.folder, "--format", "safetensors"), "--trust shared.networks")
    refused(here("pick", finished.folder, "--max-macs", "1e9"), "--trust shared.networks")
    assert not marker.exists()
    answer = here(
        "export", finished.folder, "--format", "safetensors", "--trust", "shared", "--json"
    )
    assert answer[0] == 0, answer
    assert marker.exists()
    models = json.loads(answer[1])["manifest"]["models"]
    assert [model["name"] for model in models] == ["small-0.5x", "small-1.0x"]
    assert [model["accuracy"] for model in models] == list(finished.final_accuracy.values())


def test_a_shell_command_in_a_folder_is_not_run(here, finished, tmp_path):
    folder = shutil.copytree(finished.folder, tmp_path / "hostile")
    trace = tmp_path / "trace"
    hostile = {"model": {"name": "os:system", "options": {"command": f"touch {trace}"}}}
    (folder / "experiment.toml").write_text(dump(build(hostile), data_sha256=""))
    for trust in ((), ("--trust", "os")):
        status, _, error = here("export", folder, "--format", "safetensors", *trust)
        assert status == 2, error
        assert error.count("\n") == 1
    assert not trace.exists()


def test_links_in_an_export_folder_are_not_followed(here, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("{}")
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "manifest.json").symlink_to(secret)
    refused(here("pick", "all", "--max-macs", "1"), "symbolic link")
