"""The command, called in the test's own process."""

import os
import sys

import pytest

from slimfl.cli import main


@pytest.fixture
def here(tmp_path, monkeypatch, capsys):
    """Run the command in an empty folder: (status, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLIMFL_TRUST", raising=False)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["slimfl", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert "SLIMFL_TRUST" not in os.environ  # trust ends with the command
        return ended.value.code, *capsys.readouterr()

    return call
