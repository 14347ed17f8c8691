"""Requests that once ended in a traceback, a hang or gigabytes: one sentence, or the answer."""

import json
import os
import re
import tomllib
from pathlib import Path

import pytest

from slimfl.cli.machine import EXTRAS

TINY = [Path(__file__).with_name("tiny.toml")]


@pytest.mark.parametrize(
    "arguments",
    [
        ("link", "--noise-dbm", "-8"),
        ("link", "--noise-dbm", "0"),
        ("link", "--distance-m", "2000"),
        ("link", "--noise-dbm", "300", "--power-dbm", "-300"),
        ("link", "--spectral-efficiency", "100,1e-6"),
        ("bound", "--noise-dbm", "-8"),
        ("bound", "--noise-dbm", "100", "--delta", "0"),
    ],
    ids=" ".join,
)
@pytest.mark.filterwarnings("error::RuntimeWarning:slimfl")
def test_a_link_over_which_nothing_arrives_is_described(arguments, here, tmp_path):
    status, out, error = here(*arguments, "--json")
    assert status == 0, error
    document = json.loads(out)
    for figure in document.get("figures") or [document["figure"]]:
        assert (tmp_path / figure).read_bytes()[:4] == b"\x89PNG"
    if arguments[0] == "bound":
        assert document["B"]["paper"] is None
    status, out, error = here(*arguments)
    assert status == 0, error


WRONG = {
    "dB": (("link", "--noise-dbm", "1e308"), "radio.noise_dbm"),
    "denormal": (("link", "--distance-m", "1e-320"), "at least 0.001"),
    "rates": (("link", "--spectral-efficiency", "90", "--segments", "9"), "at most 400"),
    "image": (("cost", "ul-mobilenet", "--image", "nan,1,1"), "--image"),
    "large image": (("cost", "ul-mobilenet", "--image", "3,1e5,1e5"), "--image"),
    "5000 digits": (("run", *TINY, "--set", f"seed={'9' * 5000}"), "digits"),
    "no method": (("run", *TINY, "--method", ""), "method has an empty value"),
    "one width": (("run", *TINY, "--set", "model.widths=0.5"), "must be a list"),
    "64 bits": (("run", *TINY, "--set", f"seed={2**63}"), "64 bits"),
    "nested lists": (("run", *TINY, "--set", f"radio.split={'[' * 2000}"), "split"),
    "nested options": (
        ("run", *TINY, "--set", f"model.options.a={'[' * 20}{']' * 20}"),
        "nested too deeply",
    ),
    "long name": (("run", *TINY, "--out", "x" * 300), "File name too long"),
    "long dataset": (("run", *TINY, "--set", f"data.dataset={'x' * 300}"), "no dataset"),
    "nobody's home": (("run", *TINY, "--set", "data.dataset=~nobody/x"), "no dataset"),
    "classes": (("run", *TINY, "--set", "model.options.classes=3"), "10 classes"),
    "channels": (("run", *TINY, "--set", "model.options.channels=0,0,0"), "model.options"),
    "huge channels": (("run", *TINY, "--set", "model.options.channels=99999,9,9"), "1 to 4096"),
    "threads": (("run", *TINY, "--set", "threads=2000"), "threads"),
    "noise": (
        ("run", *TINY, "--set", "privacy.clip_norm=1", "--set", "privacy.noise_multiplier=1e-300"),
        "privacy.noise_multiplier",
    ),
    "a boolean": (("run", *TINY, "--set", "radio.noise_dbm=true"), "radio.noise_dbm"),
    "a huge grid": (
        ("run", *TINY, *(w for key in ("data.alpha", "training.momentum", "training.learning_rate")
            for w in ("--set", f"{key}=" + "0.5," * 99 + "0.5"))),
        "10,000 runs",
    ),
    "report of a long name": (("report", "x" * 300), "too long"),
    "no tracker": (("run", *TINY, "--set", "track=['wandb']"), "pip install '.[wandb]'"),
    "bound": (("bound", "--delta", "nan"), "--delta"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_is_one_sentence_before_any_work(name, here, tmp_path, without):
    without("wandb")
    arguments, hint = WRONG[name]
    status, out, error = here(*arguments)
    assert status == 2, error
    assert out == ""
    assert hint in error
    assert error.startswith("slimfl: ")
    assert error.count("\n") == 1
    assert len(error) < 500
    assert not list(tmp_path.glob("*/*")), "something was written"


@pytest.mark.parametrize("special", ["fifo", "loop", "/dev/zero", "folder"])
@pytest.mark.parametrize("command", [("run",)])
def test_what_is_no_regular_file_is_not_waited_for(command, special, here, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "folder").mkdir()
    status, _, error = here(*command, special)
    assert status == 2
    assert special in error
    assert error.count("\n") == 1


def test_brackets_in_names_are_brackets(here, tmp_path):
    status, out, error = here("run", *TINY, "--out", "[/b] [bold]x")
    assert status == 0, error
    assert "[/b] [bold]x/report.html" in error
    status, out, error = here("compare", "[/b] [bold]x")
    assert status == 0, error
    status, out, _ = here("doctor")
    assert "'.[wandb]'" in out or "installed" in out
    status, out, error = here("data", "show", "--dataset", "synthetic", "--out", "[/b].png")
    assert status == 0, error
    assert "figure: [/b].png" in error


def test_doctor_says_which_extra_to_install(here, without):
    without("mlflow")
    _, out, _ = here("doctor")
    assert "pip install '.[mlflow]'" in out


def test_doctor_and_get_started_know_every_extra():
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    page = (root / "docs/get-started.md").read_text()
    for extra, packages in project["optional-dependencies"].items():
        assert extra in ("docs", "test") or f"`{extra}`" in page, extra
        if extra not in ("docs", "dev", "flower", "test"):
            # sionna-no-rt is imported as sionna, mlflow-skinny as mlflow
            named = {re.match(r"[a-z]+", each)[0] for each in packages}
            wanted = named - {"slimfl"}  # another extra, listed by itself
            assert set(EXTRAS[extra]) == wanted


def test_a_word_of_a_key_is_a_word_on_the_command_line(here):
    status, _, error = here("run", *TINY, "--set", "radio.accounting=true", "--out", "out")
    assert status == 0, error
    status, _, error = here("run", *TINY, "--set", "radio.accounting=paper", "--out", "paper")
    assert status == 0, error


def test_true_in_a_file_is_told_from_the_word(here, tmp_path):
    (tmp_path / "e.toml").write_text("radio.accounting = true\n")
    status, _, error = here("run", "e.toml", "--out", "out")
    assert status == 2
    assert 'give it "true" or "paper"' in error


def test_resume_says_which_tracker_is_absent_before_it_goes_on(here, tmp_path, without):
    without("wandb")
    assert here("run", *TINY, "--out", "out")[0] == 0
    file = tmp_path / "out/slimfl-seed0/experiment.toml"
    file.write_text(file.read_text().replace("track = []", 'track = ["wandb"]'))
    status, out, error = here("resume", "out")
    assert (status, out) == (2, "")
    assert "pip install '.[wandb]'" in error
