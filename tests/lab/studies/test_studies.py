"""Studies end to end at the smallest size: runs, answers, files, and what is unfinished."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from lab.studies import STUDIES
from lab.studies.make import cells_of, make, write
from lab.studies.rival_runs import DEVICES, _far
from lab.studies.scale import SCALES
from lab.studies.split import split_runs
from lab.studies.standing import accuracy_at, final_standing, standing_within
from slimfl.devices import population_of
from slimfl.experiment import dump
from slimfl.results import RunRecord
from slimfl.runs.sweeps.job import complete

TINY = replace(
    SCALES["smoke"], rounds=2, rival_rounds=3, steps=2, seeds=2, test_samples=100, evaluate_every=1
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs of two studies; others find those that they share."""
    folder = tmp_path_factory.mktemp("cells")
    for cell in cells_of([STUDIES["split"], STUDIES["widths"]], TINY):
        complete(cell.job(folder))
    return folder


@pytest.mark.parametrize("name", ["split", "widths"])
def test_a_finished_study_says_what_it_found(name: str, cache: Path, tmp_path: Path) -> None:
    made = make(STUDIES[name], TINY, cache, run=False)
    assert made.lacking == []
    document = write(made, tmp_path, f"python -m lab study {name}")
    assert json.loads(json.dumps(document)) == json.loads((tmp_path / "results.json").read_text())
    assert document["answer"]
    for picture in document["pictures"]:
        assert (tmp_path / picture["file"]).stat().st_size > 5000
    page = (tmp_path / "index.html").read_text()
    assert made.study.question in page
    assert "not finished" not in page
    rows = sum(len(table["rows"]) for table in document["tables"])
    assert rows == (10 if name == "split" else 2 + 3 + 4 + 6 + 8)


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_answers_from_whatever_is_there(name: str, cache: Path, tmp_path: Path) -> None:
    for folder in (tmp_path / "nothing", cache):
        made = make(STUDIES[name], TINY, folder, run=False)
        document = write(made, tmp_path / name, "command")
        lacking = {job.name for c in made.cells if (job := c.job(folder)).rounds_done < c.rounds}
        assert set(document["lacking"]) == lacking


def test_accuracies_and_energy_are_those_of_the_records(cache: Path) -> None:
    cells = STUDIES["widths"].cells(TINY)[: TINY.seeds]
    records = [record for cell in cells if (record := cell.record(cache))]
    last = final_standing("one", records, "1.0x")
    for record in records:
        seed = record.experiment.seed
        assert last.by_seed[seed] == 100 * record.lines[-1].accuracy["1.0x"]
    spent = {r.experiment.seed: r.lines[0].energy_j + (r.lines[0].compute_energy_j or 0)
             for r in records}  # fmt: skip
    within = standing_within("one", records, "1.0x", spent)
    first = {r.experiment.seed: 100 * r.lines[0].accuracy["1.0x"] for r in records}
    assert dict(within.by_seed) == first
    nothing = standing_within("one", records, "1.0x", {s: e / 2 for s, e in spent.items()})
    assert not nothing.by_seed


def test_every_run_of_every_study_can_be_described() -> None:
    for study in STUDIES.values():
        cells = study.cells(SCALES["standard"])
        assert len({c.name for c in cells}) == len({dump(c.experiment) for c in cells})
        seeds = SCALES["standard"].rival_seeds if study.name == "rivals" else 3
        assert {c.experiment.seed for c in cells} == set(range(seeds))


@pytest.mark.parametrize(
    ("end", "tests"), [(4, []), (10, [10]), (50, [40, 45, 50]), (100, range(75, 101, 5)), (3, [])]
)
def test_a_final_accuracy_is_the_mean_over_the_last_rounds(end: int, tests: Sequence[int]) -> None:
    """With a test in every fifth round; before the first of them there is nothing."""
    rounds = [5 * number for number in range(1, 31)]
    lines = [SimpleNamespace(round=r, accuracy={"1.0x": r**2 / 1e4}) for r in rounds]
    record = cast(RunRecord, SimpleNamespace(evaluated=lines))
    expected = [r for r in tests if r <= end]
    found = accuracy_at(record, "1.0x", end)
    if not expected:
        assert found is None
    else:
        assert found == pytest.approx(100 * sum(r**2 / 1e4 for r in expected) / len(expected))


def test_where_the_last_rounds_have_no_test_the_last_test_counts() -> None:
    lines = [SimpleNamespace(round=10, accuracy={"1.0x": 0.5})]
    assert accuracy_at(cast(RunRecord, SimpleNamespace(evaluated=lines)), "1.0x", 40) == 50.0


def test_far_devices_are_the_farthest_quarter_and_weigh_labels_as_they_hold_them(
    cache: Path,
) -> None:
    cells = split_runs(TINY, "at rest", "0.8 and 0.2 for all")
    records = [record for cell in cells if (record := cell.record(cache))]
    found = _far("SlimFL", records, "1.0x")
    assert len(found.by_seed) == TINY.seeds
    for record in records:
        distance_m = population_of(record.experiment).distance_m.tolist()
        farthest = sorted(range(DEVICES), key=lambda device: -distance_m[device])[: DEVICES // 4]
        by_label = record.lines[-1].label_accuracy
        assert by_label is not None
        accuracies = []
        for device in farthest:
            held = record.class_counts[device]
            right = sum(n * (by_label["1.0x"][label] or 0.0) for label, n in enumerate(held))
            accuracies.append(100 * right / sum(held))
        assert found.by_seed[record.experiment.seed] == pytest.approx(sum(accuracies) / 5)
