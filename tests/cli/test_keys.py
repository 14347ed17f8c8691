"""`slimfl keys`: the keys of an experiment, as the program and as the docs list them."""

import json
import subprocess
import sys

import pytest

from slimfl.experiment import KEYS


def listed(here, *arguments):
    status, out, error = here("keys", *arguments, "--json")
    assert status == 0, error
    return json.loads(out)["keys"]


def test_every_key_is_listed_with_what_it_means(here):
    entries = listed(here)
    classes = [one["key"] for one in entries if one["section"] == "population.classes"]
    others = [one["key"] for one in entries if one["section"] != "population.classes"]
    assert sorted(others) == sorted(KEYS)
    assert "classes.max_width" in classes
    assert all(one["meaning"] and one["values"] for one in entries)
    assert not any("`" in one["meaning"] + one["values"] for one in entries)
    (share,) = (one for one in entries if one["key"] == "federation.participation")
    assert share == {
        "key": "federation.participation",
        "section": "federation",
        "default": 1.0,
        "values": "number above 0, at most 1",
        "meaning": "Share of the devices asked to train in a round.",
    }


def test_what_must_be_given_is_said(here):
    required = [one["key"] for one in listed(here) if "required" in one["values"]]
    assert required == ["classes.name"]


def test_a_section_or_a_word_chooses(here):
    assert {one["section"] for one in listed(here, "server")} == {"server"}
    assert len(listed(here, "server")) == 5
    found = [one["key"] for one in listed(here, "NESTEROV")]
    assert found == ["training.nesterov"]
    assert "training.schedule" in [one["key"] for one in listed(here, "learning rate")]
    assert [one["key"] for one in listed(here, "experiment")][:3] == ["method", "seed", "rounds"]


@pytest.mark.parametrize("width", [80, 110])
def test_no_key_is_cut_in_the_table(here, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    status, out, _ = here("keys")
    assert status == 0
    assert max(map(len, out.splitlines())) <= width
    assert set(KEYS) <= set(out.split())


@pytest.mark.parametrize(
    ("word", "words"),
    [("rdio", "'radio'"), ("trainig.lr", "'training'"), ("xyzzy", "federation"), ("", "sections")],
)
def test_an_unknown_word_names_the_nearest_section(word, words, here):
    status, out, error = here("keys", word)
    assert (status, out, error.count("\n")) == (2, "", 1)
    assert words in error


def test_a_key_like_no_other_says_where_the_keys_are(here):
    status, _, error = here("run", "--set", "foo=1,2")
    assert status == 2
    assert "`slimfl keys` lists the keys" in error


def test_listing_the_keys_does_not_import_torch():
    code = (
        "import sys; sys.argv = ['slimfl', 'keys', 'radio']; from slimfl.cli import main\n"
        "try: main()\nfinally: assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "radio.noise_dbm" in done.stdout
