"""Run folders of version 0.1 open, resume to the same bits and are reported.

They were stopped after three of six rounds; `expected.json` has the digests that version 0.1 itself
reached from there.
"""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from slimfl.cli.app import app
from slimfl.round import RunFolder, Simulation, run
from tests.golden.test_golden import GOLDEN, machine

HERE = Path(__file__).parent / "old_folders"
EXPECTED = json.loads((HERE / "expected.json").read_text())


@pytest.mark.parametrize("case", EXPECTED)
def test_an_old_folder_resumes_to_the_same_bits_and_is_reported(case, tmp_path):
    shutil.copytree(HERE / case, tmp_path / case)
    folder = RunFolder.open(tmp_path / case)
    simulation = Simulation(folder.experiment())
    lines = run(simulation, folder)
    kept = [{k: v for k, v in line.as_json().items() if k != "seconds"} for line in lines]
    found = {
        "lines": hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest(),
        "model": hashlib.sha256(simulation.global_model.tobytes()).hexdigest(),
    }
    if found != EXPECTED[case] and machine() != json.loads(GOLDEN.read_text())["machine"]:
        pytest.skip("these digests were made on another machine")
    assert found == EXPECTED[case]
    assert len(folder.metrics()) == 6
    for command in ("compare", "report"):
        done = CliRunner().invoke(app, [command, str(tmp_path / case)])
        assert done.exit_code == 0, done.output
