"""Naming parts: what is imported and what is called, from an attacker's point of view."""

import importlib
import os
import sys

import pytest

from slimfl.errors import RequestError
from slimfl.experiment import naming

HOSTILE = """
from pathlib import Path
Path({marker!r}).write_text("imported")
import os, subprocess
from functools import partial
from os import popen, system
from subprocess import call

class Part:
    pass

class Other:
    pass

def made(**options):
    Path({marker!r}).write_text("called")

bound = Part().__str__
shell = partial(os.system, "true")
"""


class Kept:
    """A part that the caller has."""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A package whose import leaves a trace."""
    marker = tmp_path / "marker"
    for name in ("stranger", "strangers"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("from .inner import Part\n")
        (tmp_path / name / "inner.py").write_text(HOSTILE.format(marker=str(marker)))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv(naming.VARIABLE, raising=False)
    yield marker
    for name in [
        name for name in sys.modules if name.partition(".")[0] in ("stranger", "strangers")
    ]:
        del sys.modules[name]


def resolve(name):
    return naming.resolve("part", name, {"kept": Kept}, lambda made: made.__name__ == "Part")


def test_a_built_in_name_needs_no_trust(module):
    assert resolve("kept") is Kept


@pytest.mark.parametrize("trusted", ["", "strangers", "strange", "stranger.other", "inner"])
def test_a_module_that_nobody_allowed_is_not_imported(module, monkeypatch, trusted):
    monkeypatch.setenv(naming.VARIABLE, trusted)
    with pytest.raises(RequestError, match=r"add --trust stranger\.inner ") as caught:
        resolve("stranger.inner:Part")
    assert "\n" not in str(caught.value)
    assert not module.exists()


@pytest.mark.parametrize("trusted", ["stranger.inner", "stranger"])
def test_a_package_covers_its_modules(module, trusted):
    with naming.trusting([trusted]):
        assert resolve("stranger.inner:Part").__name__ == "Part"
        assert resolve("stranger.inner:made").__name__ == "made"
    assert module.read_text() == "imported"  # and nothing was called


def test_a_part_may_pass_through_its_package_alone(module):
    with naming.trusting(["stranger"]):
        assert resolve("stranger:Part").__module__ == "stranger.inner"


@pytest.mark.parametrize(
    "name",
    [
        "os:system", "os:popen", "subprocess:call", "subprocess:Popen", "builtins:eval",
        "posix:system", "importlib:import_module", "runpy:run_path", "os.path:join",
        "stranger.inner:system", "stranger.inner:popen", "stranger.inner:call",
        "stranger.inner:bound", "stranger.inner:shell", "stranger.inner:Other",
        "stranger.inner:Path", "stranger.inner:os", "stranger.inner:__builtins__",
        "stranger.inner:inner.Part", "stranger.inner:", "stranger.inner:nothing",
    ],
)  # fmt: skip
def test_what_is_no_part_is_refused_even_in_a_trusted_module(module, name):
    everything = ["stranger", "os", "subprocess", "builtins", "posix", "importlib", "runpy"]
    with naming.trusting(everything), pytest.raises(RequestError) as caught:
        resolve(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["", ":", ":x", ".x:y", "a b:c", "a;b:c", "a..b:c", "x/y:z", "1:a"]
)
def test_a_name_that_is_none_says_what_there_is(module, name):
    with pytest.raises(RequestError, match="kept"):
        resolve(name)


def test_a_module_that_cannot_be_imported_is_one_sentence(module, tmp_path):
    (tmp_path / "stranger" / "broken.py").write_text("raise KeyError('a\\nb')\n")
    with naming.trusting(["stranger"]), pytest.raises(RequestError, match="KeyError") as caught:
        resolve("stranger.broken:Part")
    assert "\n" not in str(caught.value)


@pytest.fixture
def in_a_folder(tmp_path, monkeypatch):
    """A current folder that Python does not search, as for an installed command."""
    folder = tmp_path / "current"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    yield folder
    sys.modules.pop("nearby", None)


def test_the_current_folder_is_searched_for_trusted_names_and_comes_last(module, in_a_folder):
    (in_a_folder / "nearby.py").write_text("class Part:\n    pass\n")
    (in_a_folder / "stranger.py").write_text("class Part:\n    near = True\n")
    before = list(sys.path)
    with pytest.raises(RequestError, match="--trust"):
        resolve("nearby:Part")
    assert sys.path == before
    with naming.trusting(["nearby", "stranger"]):
        assert resolve("nearby:Part").__module__ == "nearby"
        assert not hasattr(resolve("stranger:Part"), "near")
    assert sys.path == before


def test_a_trusted_module_here_opens_the_folder_to_nothing_else(in_a_folder, monkeypatch):
    (in_a_folder / "decoy_of_tests.py").write_text("class Part:\n    pass\n")
    (in_a_folder / "nearby.py").write_text("import decoy_of_tests\n")
    with naming.trusting(["nearby"]), pytest.raises(RequestError, match="--trust decoy_of_tests"):
        resolve("nearby:Part")
    assert "decoy_of_tests" not in sys.modules
    with naming.trusting(["nearby.inner", "decoy_of_tests"]):
        importlib.import_module("decoy_of_tests")
    del sys.modules["decoy_of_tests"]
    with pytest.raises(ModuleNotFoundError):  # trust has ended
        importlib.import_module("decoy_of_tests")


def test_a_module_that_is_nowhere_says_where_it_was_looked_for(module, in_a_folder):
    (in_a_folder / "nearby.py").write_text("import absent_of_nearby\n")
    names = ["absent", "stranger", "nearby"]
    with naming.trusting(names):
        for name, missing in (("absent.x:Part", "absent"), ("stranger.x:Part", "stranger.x")):
            with pytest.raises(RequestError, match=f"no module '{missing}' among") as caught:
                resolve(name)
            assert str(in_a_folder) in str(caught.value)
        with pytest.raises(RequestError, match=r"\(ModuleNotFoundError: No module named 'absent_"):
            resolve("nearby:Part")


@pytest.mark.parametrize("bad", ["", "a,b", "a b", "a:b", "../a", "a.", 5])
def test_trust_takes_names_of_modules(bad):
    with pytest.raises(RequestError, match="--trust"), naming.trusting([bad]):
        pass
    assert bad not in naming.trusted()


def test_trust_ends_with_what_it_was_given_for(monkeypatch):
    monkeypatch.setenv(naming.VARIABLE, "before")
    with naming.trusting(["one", "two", "one"]):
        assert naming.trusted() == ("before", "one", "two")
    assert naming.trusted() == ("before",)
    monkeypatch.delenv(naming.VARIABLE)
    with naming.trusting(["one"]):
        assert naming.trusted() == ("one",)
    assert naming.VARIABLE not in os.environ
