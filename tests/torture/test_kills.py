"""A process that is killed, or whose disk is full, at any of its writes loses nothing.

Afterwards the same command gives the
bits of a run that was never disturbed, and no half-written file remains.
"""

import atexit
import json
import random
import shutil
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, replace
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pytest
from faults import Faults, ways
from processes import slimfl

from slimfl.engines import device_states
from slimfl.round import RunFolder
from slimfl.runs.storage.checkpoint import LINES

ROUNDS = 3
COMMON = (
    "--method", "slimfl", "--rounds", ROUNDS, "--devices", 2, "--json",
    "--set", "threads=1", "--set", "data.dataset=synthetic", "--set", "data.test_samples=20",
    "--set", "data.partition=iid", "--set", "training.steps=1", "--set", "training.batch_size=4",
)  # fmt: skip
ONE_DATASET = ("--set", "data.train_samples=60")
GRID = ("--set", "data.train_samples=40,60")
THREE_WIDTHS = ("--set", "model.widths=[0.25, 0.5, 1.0]")
PRIVACY = (
    "--set", "privacy.clip_norm=1", "--set", "privacy.noise_multiplier=0.5",
    "--set", "privacy.noise=seeded",
)  # fmt: skip
ASYNCHRONOUS = (
    "--set", "time.mode=asynchronous", "--set", "time.buffer=1",
    "--set", "radio.model=rate-adaptive",
)  # fmt: skip
SPARSE = ("--set", "federation.checkpoint_every=2")
FILES = ("--engine", "native", "--set", "federation.participation=0.5")


@dataclass(frozen=True)
class Setting:
    """A command to disturb: `run`, or the `resume` of a run that was killed at an event."""

    options: tuple
    killed_at: float | None = None
    """A fraction of the events of the run; None: the run itself is disturbed."""
    files: bool = False
    """True if the states of devices are too many for a checkpoint, and are in files beside it."""


SETTINGS = {
    f"{name}-{what}": Setting((*COMMON, *options, *extra), killed_at, options == FILES)
    for name, options in {
        "torch-2": ("--engine", "torch", *PRIVACY),
        "torch-3": ("--engine", "torch", *THREE_WIDTHS, *SPARSE),
        "native-2": ("--engine", "native", *SPARSE),
        "native-3": ("--engine", "native", *THREE_WIDTHS, *PRIVACY),
        "asynchronous-2": ("--engine", "native", *ASYNCHRONOUS, *SPARSE),
        "files-2": FILES,
    }.items()
    for what, extra, killed_at in (
        ("run", ONE_DATASET, None),
        ("resume", ONE_DATASET, 0.6),
        ("grid", GRID, None),
        ("grid-resume", GRID, 0.3),
    )
}


class Case:
    """A folder, and the command that works on it."""

    def __init__(self, setting, scratch):
        self.setting, self.scratch = setting, Path(scratch)
        self.group = self.scratch / "group"
        self.run = ("run", *setting.options, "--out", self.group)
        self.resume = ("resume", self.group, "--json")

    def prepare(self):
        """All that comes before the command to disturb, which is returned."""
        if self.setting.killed_at is None:
            self.group.mkdir()  # the events below it are counted
            return self.run
        shutil.copytree(killed(self.setting), self.group)
        return self.resume

    def disturb(self, at=None, way="before"):
        return self.slimfl(self.prepare(), Faults(self.group, at, way))

    def slimfl(self, arguments, faults=None):
        most = 0 if self.setting.files else device_states.INLINE_BYTES
        with patch.object(device_states, "INLINE_BYTES", most):
            return slimfl(arguments, self.scratch, faults)

    def go_on(self):
        """What a person would type next."""
        same = self.run if self.setting.killed_at is None else self.resume
        ended = self.slimfl(same)
        assert ended.status == 0, ended.error
        assert "Traceback" not in ended.error

    def result(self):
        return {at.name: _numbers(at) for at in sorted(self.group.iterdir()) if at.is_dir()}


def _numbers(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        del line["seconds"]
    checkpoint = RunFolder(folder).checkpoint()
    # the checksum of the metrics covers wall times
    state = {k: v for k, v in checkpoint.state.items() if k not in (LINES, "device_files")}
    # what devices keep may be in files; the model of the rounds after a kill depends on it
    tensors = {k: v for k, v in checkpoint.tensors.items() if not k.startswith("device/")}
    return lines, checkpoint.round, state, tensors


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, (*numbers, tensors) in expected.items():
        *found_numbers, found_tensors = found[name]
        assert found_numbers == numbers
        assert [line["round"] for line in numbers[0]] == list(range(1, ROUNDS + 1))
        assert found_tensors.keys() == tensors.keys()
        for key, value in tensors.items():
            np.testing.assert_array_equal(found_tensors[key], value, err_msg=f"{name} {key}")


@cache
def killed(setting):
    """The folder of a run that was killed on its way."""
    place = TemporaryDirectory()
    atexit.register(place.cleanup)
    case = Case(replace(setting, killed_at=None), place.name)
    at = int(len(case.disturb().events) * setting.killed_at)
    shutil.rmtree(case.group)
    assert case.disturb(at, "after").status == -signal.SIGKILL
    return case.group


@cache
def undisturbed(options):
    """The numbers of a run that nobody disturbed."""
    with TemporaryDirectory() as scratch:
        case = Case(Setting(options), scratch)
        _warm_up(case)
        return case.result()


def _warm_up(case):
    """The undisturbed run is in this process, so that its forks find everything imported."""
    from slimfl.cli import main

    with (
        redirect_stdout(StringIO()),
        redirect_stderr(StringIO()),
        patch.object(sys, "argv", ["slimfl", *map(str, case.run)]),
        suppress(SystemExit),
    ):
        main()


def cases(name):
    """Every event of a setting's command, and every way in which it can go wrong."""
    setting = SETTINGS[name]
    undisturbed(setting.options)
    with TemporaryDirectory() as scratch:
        ended = Case(setting, scratch).disturb()
    assert ended.status == 0, ended.error
    return [(at, kind, way) for at, kind in enumerate(ended.events) for way in ways(kind)]


def check(name, chosen):
    failures = []
    for at, kind, way in chosen:
        try:
            _check(SETTINGS[name], at, way)
        except AssertionError as error:
            failures.append(f"{way} {kind}, event {at}: {error}")
    assert not failures, f"{len(failures)} of {len(chosen)}:\n" + "\n".join(failures[:5])


def _check(setting, at, way):
    with TemporaryDirectory() as scratch:
        case = Case(setting, scratch)
        ended = case.disturb(at, way)
        if way == "full":
            assert ended.status == 1, ended
            assert "free some space" in ended.error, ended
            assert ended.error.count("slimfl: ") == 1, ended
            assert "Traceback" not in ended.error, ended
            assert not list(case.group.rglob("*.tmp")), ended
        else:
            assert ended.status == -signal.SIGKILL, ended
        case.go_on()
        assert_same(case.result(), undisturbed(setting.options))
        assert not [*case.group.rglob("*.tmp")]
        assert (case.group / "report.html").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_a_sample_of_kills_and_full_disks(name):
    check(name, random.Random(name).sample(cases(name), 3))


@pytest.mark.torture
@pytest.mark.parametrize("name", SETTINGS)
def test_every_kill_and_full_disk(name):
    check(name, cases(name))
