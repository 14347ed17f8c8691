"""The command line as users see it: results, JSON, wrong requests, speed of the help."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from slimfl.cli import main

ROOT = Path(__file__).parents[2]
SMALL = [
    "--rounds", "2",
    "--set", "data.dataset=synthetic",
    "--set", "data.train_samples=300",
    "--set", "training.steps=2",
]  # fmt: skip


def slimfl(*arguments, cwd=None, timeout=120):
    return subprocess.run(
        [sys.executable, "-c", "from slimfl.cli import main; main()", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    """The three runs of a small `slimfl run`."""
    path = tmp_path_factory.mktemp("cli") / "group"
    done = slimfl("run", *SMALL, "--out", path, "--json")
    assert done.returncode == 0, done.stderr
    return path, json.loads(done.stdout)


def test_run_writes_a_folder_a_method_and_a_report(group):
    path, document = group
    assert sorted(p.name for p in path.iterdir()) == [
        "report.html", "slimfl-seed0", "vanilla-0.5x-seed0", "vanilla-1.0x-seed0",
    ]  # fmt: skip
    assert Path(document["report"]) == path / "report.html"
    methods = {row["method"] for row in document["runs"]}
    assert {"slimfl", "vanilla-0.5x", "vanilla-1.0x"} <= methods


@pytest.mark.slow
def test_run_prints_a_closing_table_and_nothing_else_on_standard_output(tmp_path):
    done = slimfl("run", *SMALL, "--method", "slimfl", "--out", tmp_path / "g")
    assert done.returncode == 0, done.stderr
    assert "SlimFL" in done.stdout
    assert "engine" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.slow
def test_the_same_command_and_resume_find_nothing_to_do(group):
    path, document = group
    again = slimfl("run", *SMALL, "--out", path, "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["runs"] == document["runs"]
    resumed = slimfl("resume", path, "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["runs"] == document["runs"]


@pytest.mark.slow
def test_resume_carries_out_runs_that_were_only_planned(group, tmp_path):
    import shutil

    path, document = group
    copy = tmp_path / "copy"
    shutil.copytree(path, copy)
    for file in ("metrics.jsonl", "partition.json"):
        (copy / "vanilla-1.0x-seed0" / file).unlink()
    shutil.rmtree(copy / "vanilla-1.0x-seed0/checkpoints")
    done = slimfl("resume", copy, "--json")
    assert done.returncode == 0, done.stderr

    def accuracies(runs):
        return {row["method"]: row["accuracy"] for row in runs}

    assert accuracies(json.loads(done.stdout)["runs"]) == accuracies(document["runs"])


@pytest.mark.slow
def test_cost_prints_ours_beside_the_papers():
    done = slimfl("cost", "ul-mobilenet", "--json")
    half, full = json.loads(done.stdout)["widths"]
    assert (half["parameters"], full["parameters"]) == (1530, 4586)
    assert (half["paper"]["parameters"], full["paper"]["parameters"]) == (2293, 4586)
    assert (half["segment_parameters"], full["segment_parameters"]) == (1530, 3056)
    ancestor = slimfl("cost", "us-mobilenet", "--widths", "0.25,0.5,1.0", "--json")
    # four numbers per channel, width and convolution; 192 channels at full width
    added = [row["parameters"] for row in json.loads(ancestor.stdout)["widths"]]
    assert added == [578 + 4 * 48, 1530 + 4 * (48 + 96), 4586 + 4 * (48 + 96 + 192)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("channel", "expected"),
    [("good", (0.983, 0.964, 0.993, 0.973)), ("poor", (0.810, 0.632, 0.912, 0.704))],
)
def test_link_reproduces_table_vi(channel, expected, tmp_path):
    asked = ("--channel", channel, "--set", "radio.rates=equal", "--draws", 10_000)
    done = slimfl("link", *asked, "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    formula = document["slimfl"]["decoding_probabilities"] + [
        v["decoding_probabilities"][0] for v in document["vanilla"].values()
    ]
    simulated = document["slimfl"]["simulated"] + [
        v["simulated"][0] for v in document["vanilla"].values()
    ]
    for p, drawn, paper in zip(formula, simulated, expected, strict=True):
        deviation = (p * (1 - p) / 10_000) ** 0.5
        assert abs(p - paper) < 0.0005 + 3 * deviation
        assert abs(drawn - p) < 4 * deviation
    for figure in document["figures"]:
        assert (tmp_path / figure).read_bytes()[:4] == b"\x89PNG"


@pytest.mark.slow
def test_link_counts_d_over_segments_and_over_messages(tmp_path):
    done = slimfl("link", "--segments", 3, "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert '"D":' not in done.stdout
    advised = document["advice"]["D_segments"]
    signals = {"slimfl": document["slimfl"]}
    signals |= {f"vanilla-{width}": signal for width, signal in document["vanilla"].items()}
    assert list(advised) == list(signals)
    for segments, (name, signal) in zip((3, 1, 2, 3), signals.items(), strict=True):
        p = signal["decoding_probabilities"]
        messages = 3 if name == "slimfl" else 1
        assert len(p) == messages
        assert signal["D_messages"] == pytest.approx(sum(1 / each for each in p))
        over_segments = p if messages == 3 else p * segments
        assert signal["D_segments"] == pytest.approx(sum(1 / each for each in over_segments))
        assert signal["D_segments"] == pytest.approx(advised[name])


def test_bound_falls_with_the_rounds_and_the_sharper_one_is_lower(tmp_path):
    done = slimfl("bound", "--rounds", 500, "--json", cwd=tmp_path)
    rows = json.loads(done.stdout)["bound"]
    assert rows[0]["bound_paper"] > rows[-1]["bound_paper"]
    assert all(row["bound_sharp"] < row["bound_paper"] for row in rows)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--strong-convexity", "2"], "must not exceed --smoothness"),
        (["--weights", "0.5,0.6"], "sum to 1"),
    ],
)
def test_bound_refuses_what_contradicts_itself(options, sentence, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["slimfl", "bound", *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


def test_data_show_draws_a_partition(tmp_path):
    done = slimfl("data", "show", "--dataset", "synthetic", "--alpha", 0.1, "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert sum(map(sum, document["class_counts"])) == 2000
    assert (tmp_path / document["figure"]).exists()


@pytest.mark.slow
def test_doctor_and_data_list_answer():
    for command in (("doctor",), ("data", "list")):
        done = slimfl(*command, "--json")
        assert done.returncode == 0, done.stderr
        json.loads(done.stdout)


WRONG = {
    "unknown key": (("run", "--set", "radio.nose_dbm=-40"), "radio.noise_dbm"),
    "split infeasible": (("run", "--set", "radio.split=[0.5,0.5]"), "would work"),
    "too many devices": (
        ("run", "--devices", "9999", "--set", "data.dataset=synthetic"),
        "federation.devices",
    ),
    "method": (("run", "--method", "slimlf"), "vanilla-0.5x"),
    "the paper's name for other widths": (
        ("run", "--method", "vanilla-1.5x", "--set", "model.widths=[0.25,0.5,1.0]"),
        "vanilla-all",
    ),
    "a window that never fills": (
        ("run", "--rounds", "30", "--set", "federation.stop_on_convergence=true"),
        "federation.convergence_window",
    ),
    "toml missing": (("run", "no-such.toml"), "no-such.toml"),
    "dataset": (("run", "--set", "data.dataset=cifar"), "fashion-mnist"),
    "data dir": (("run", "--data-dir", "."), "--data-dir"),
    "run folder": (("resume", "."), "."),
    "model": (("cost", "vgg"), "ul-mobilenet"),
    "native engine": (
        ("run", "--engine", "native", "--set", "model.name=slimfl.nn:slimmable"),
        "model",
    ),
    "segments": (("link", "--segments", "3", "--split", "0.8,0.2"), "2 values for 3 widths"),
    "superlink": (("run", "--superlink", "nowhere"), "HOST:PORT"),
    "superlink elsewhere": (("run", "--superlink", "192.0.2.1:80"), "--root-certificates"),
    "superlink for torch": (
        ("run", "--engine", "torch", "--superlink", "127.0.0.1:1"),
        "--engine flower",
    ),
    "own data": (("run", "--engine", "flower", "--set", "data.partition=own"), "--superlink"),
    "measured gains": (("run", "--set", "radio.gains=measured"), 'engine = "flower"'),
    "kit": (("deploy", "up", "."), "slimfl deploy init"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_is_status_2_and_one_sentence(name, here, tmp_path):
    arguments, hint = WRONG[name]
    status, out, error = here(*arguments)
    assert status == 2
    assert out == ""
    assert hint in error
    assert error.count("\n") == 1
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("extra", "arguments"),
    [
        ("flower", ("run", *SMALL, "--engine", "flower")),
        ("deploy", ("deploy", "init", "kit")),
        ("deploy", ("deploy", "up", "kit")),
    ],
)
def test_without_flower_one_sentence_says_what_to_install(
    extra, arguments, here, tmp_path, without
):
    without("flwr", "ray")
    status, out, error = here(*arguments)
    assert (status, out) == (2, "")
    assert f"pip install '.[{extra}]'" in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())
    assert here("doctor")[0] == 0


def test_a_kit_is_laid_out_and_asked_for_its_state(here, tmp_path):
    pytest.importorskip("flwr")
    status, out, _ = here("deploy", "init", "kit", "--devices", 2, "--port", 9, "--json")
    assert status == 0
    assert json.loads(out) == {
        "kit": str(tmp_path / "kit"), "address": "127.0.0.1:9", "devices": 2,
    }  # fmt: skip
    status, out, _ = here("deploy", "status", "kit", "--json")
    assert status == 0
    assert [row["state"] for row in json.loads(out)["processes"]] == [
        "does not answer", "unknown", "unknown",
    ]  # fmt: skip
    assert here("deploy", "down", "kit")[0] == 0  # nothing runs: nothing to do
    status, _, error = here("run", *SMALL, "--devices", 2, "--superlink", "kit", "--out", "group")
    assert status == 1
    assert "does not answer" in error
    status, _, error = here("run", *SMALL, "--superlink", "kit", "--out", "group")
    assert status == 2
    assert "--devices 2" in error
    assert not (tmp_path / "group").exists()


def test_a_wrong_request_leaves_no_traceback_in_a_shell(tmp_path):
    done = slimfl("run", "--alpha", "-1", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "slimfl: data.alpha: input should be greater than 0 (it is -1)\n"


def test_a_corrupt_data_file_is_status_2(here, tmp_path):
    for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        (tmp_path / f"{name}-ubyte").write_bytes(b"\0\0\x08\x03nonsense")
    status, _, error = here("run", "--set", f"data.dataset={tmp_path}")
    assert status == 2
    assert "train-images-idx3-ubyte" in error
    assert error.count("\n") == 1


def test_a_folder_that_cannot_be_written_is_status_2(here, tmp_path):
    (tmp_path / "file").write_text("")
    status, _, error = here("run", *SMALL, "--out", tmp_path / "file" / "runs")
    assert status == 2
    assert "--out" in error


def test_help_waits_for_no_heavy_import():
    done = slimfl("--help")
    assert done.returncode == 0
    assert {"run", "resume", "compare", "report", "link", "bound", "cost", "data", "doctor"} <= set(
        done.stdout.split()
    )
    loaded = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import slimfl.cli"],
        capture_output=True,
        text=True,
    ).stderr
    for heavy in ("torch", "numpy", "pydantic", "rich", "matplotlib", "flwr", "ray"):
        assert f" {heavy}\n" not in loaded, f"{heavy} is imported before a command needs it"


def test_a_mistyped_key_is_answered_before_torch_is_imported(tmp_path):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "from slimfl.cli import main; main()", "run",
         "--set", "trainig.steps=3"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2
    *imports, sentence = done.stderr.splitlines()
    assert sentence == "slimfl: unknown key 'trainig'; did you mean 'training'?"
    assert any(line.endswith(" pydantic") for line in imports)
    assert not any(line.endswith(" torch") for line in imports)


LAB = "python -m lab"
LIGHT = {
    "compare": ["compare", "GROUP"],
    "report": ["report", "GROUP", "--out", "report.html"],
    "watch": ["watch", "GROUP", "--no-browser", "--seconds", "0"],
    "link": ["link", "--draws", "10"],
    "link --explore": ["link", "--explore"],
    "bound": ["bound", "--rounds", "2"],
    "data list": ["data", "list"],
    "data show": ["data", "show", "--dataset", "synthetic"],
    "population show": ["population", "show", "--out", "cell.png"],
    "reproduce status": [LAB, "reproduce", "status"],
    "reproduce pack": [LAB, "reproduce", "pack", "--cache", "."],
    "study status": [LAB, "study", "status"],
    "study pack": [LAB, "study", "pack", "--cache", "."],
    "pick from an export": ["pick", "EXPORT", "--min-accuracy", "0.001"],
}


@pytest.fixture(scope="module")
def export(group, tmp_path_factory):
    """The weights of one of the runs."""
    path = tmp_path_factory.mktemp("cli") / "export"
    run = group[0] / "slimfl-seed0"
    done = slimfl("export", run, "--format", "safetensors", "--out", path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.slow
@pytest.mark.parametrize("words", LIGHT.values(), ids=LIGHT)
def test_a_command_that_trains_nothing_does_not_import_torch(group, export, tmp_path, words):
    program, heavy = "from slimfl.cli import main; main()", ["torch", "scipy.stats", "ray"]
    if words[0] == LAB:
        program = "from lab.__main__ import app, main; main(app, 'lab')"
        words = words[1:]
    elif words[0] not in ("compare", "report", "watch", "pick"):  # these read runs as data frames
        heavy.append("pandas")
    if "--explore" in words:  # the page has tables of Marcum's Q
        heavy.remove("scipy.stats")
    code = (
        f"import atexit, sys; sys.path.insert(0, {str(ROOT)!r})\n"
        f"heavy = {heavy}\n"
        "atexit.register(lambda: print([m for m in heavy if m in sys.modules]))\n" + program
    )
    folders = {"GROUP": str(group[0]), "EXPORT": str(export)}
    done = subprocess.run(
        [sys.executable, "-c", code, *(folders.get(word, word) for word in words)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
