"""`python -m lab study`: answers from what is there, says what lacks, packs and counts."""

import json

import pytest

from lab.studies import STUDIES


def test_a_study_without_runs_answers_with_what_lacks(here, tmp_path):
    status, out, err = here("study", "widths", "--as-is", "--json")
    assert status in (0, None)
    document = json.loads(out)
    assert document["study"] == "widths"
    assert len(document["lacking"]) == document["runs"] > 0
    assert f"{document['runs']} of {document['runs']} runs are not finished" in err
    page = tmp_path / "studies" / "widths-smoke" / "index.html"
    assert "runs are not finished" in page.read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["rivls"], "choose one of regimes, rivals"),
        (["rivals", "--scale", "big"], "choose one of smoke, standard"),
        (["status", "nothing"], "choose one of regimes, rivals"),
        (["pack"], "give the folder of the runs with --cache"),
    ],
)
def test_a_wrong_word_is_told_with_the_right_ones(here, words, told):
    status, out, err = here("study", *words)
    assert (status, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1


def test_the_status_counts_every_run_once(here):
    _, out, _ = here("study", "status", "--json", "--scale", "smoke")
    cells = [cell["name"] for cell in json.loads(out)["cells"]]
    assert len(cells) == len(set(cells))
    _, out, _ = here("study", "status", "widths", "--json", "--scale", "smoke")
    assert {cell["name"] for cell in json.loads(out)["cells"]} <= set(cells)
    assert len(STUDIES) == 5
