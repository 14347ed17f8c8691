"""Studies end to end at the smallest size: runs, answers, files, and what is unfinished."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from lab.catalogue import STUDIES
from lab.make import cells_of, make, write
from lab.question import Final, late_tests
from lab.question import complete as finished_runs
from lab.scale import study_scale
from lab.studies.compare import final_of, tell_apart
from lab.studies.regimes import _within
from lab.studies.rivals import DEVICES, ENTRIES, Result, _far, _ranking
from lab.studies.split import split_runs
from slimfl.devices import population_of
from slimfl.experiment import dump
from slimfl.results.records import RunRecord
from slimfl.results.statistics import Paired
from slimfl.runs.sweeps.job import complete

SMALL = {"rounds": 2, "rival_rounds": 3, "steps": 2, "test_samples": 100, "evaluate_every": 1}
TINY = study_scale("smoke").model_copy(update=SMALL)
STANDARD = study_scale("standard")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs of two studies; others find those that they share."""
    folder = tmp_path_factory.mktemp("cells")
    for cell in cells_of([STUDIES["split"], STUDIES["widths"]], TINY):
        complete(cell.job(folder))
    return folder


@pytest.mark.parametrize("name", ["split", "widths"])
def test_a_finished_study_says_what_it_found(name: str, cache: Path, tmp_path: Path) -> None:
    made = make([STUDIES[name]], TINY, cache, run=False)
    assert not made.missing
    document = write(made, tmp_path, f"python -m lab study {name}")
    assert json.loads(json.dumps(document)) == json.loads((tmp_path / "results.json").read_text())
    (study,) = document["questions"]
    assert study["sentences"]
    for picture in study["pictures"]:
        assert (tmp_path / picture["file"]).stat().st_size > 5000
    page = (tmp_path / "index.html").read_text()
    assert STUDIES[name].asks in page
    assert "are finished" not in page
    rows = sum(len(table["rows"]) for table in study["tables"])
    assert rows == (10 if name == "split" else 2 + 3 + 4 + 6 + 8)


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_answers_from_whatever_is_there(name: str, cache: Path, tmp_path: Path) -> None:
    for folder in (tmp_path / "nothing", cache):
        made = make([STUDIES[name]], TINY, folder, run=False)
        document = write(made, tmp_path / name, "command")
        lacking = {job.name for c in made.cells if (job := c.job(folder)).rounds_done < c.rounds}
        assert {each["run"] for each in document["missing"]} == lacking


def test_accuracies_and_energy_are_those_of_the_records(cache: Path) -> None:
    cells = STUDIES["widths"].cells(TINY)[: TINY.seeds]
    records = [record for cell in cells if (record := cell.record(cache))]
    last = final_of(records, "1.0x")
    for record in records:
        seed = record.experiment.seed
        assert last.by_seed[seed] == 100 * record.lines[-1].accuracy["1.0x"]
    spent = {r.experiment.seed: r.lines[0].energy_j + (r.lines[0].compute_energy_j or 0)
             for r in records}  # fmt: skip
    first = {r.experiment.seed: 100 * r.lines[0].accuracy["1.0x"] for r in records}
    assert _within(records, "1.0x", spent) == first
    assert not _within(records, "1.0x", {s: e / 2 for s, e in spent.items()})


def test_every_run_of_every_study_can_be_described() -> None:
    for study in STUDIES.values():
        cells = study.cells(STANDARD)
        assert len({c.name for c in cells}) == len({dump(c.experiment) for c in cells})
        seeds = STANDARD.rival_seeds if study.name == "rivals" else 3
        assert {c.experiment.seed for c in cells} == set(range(seeds))


@pytest.mark.parametrize(
    ("end", "tests"), [(4, []), (10, [10]), (50, [40, 45, 50]), (100, range(75, 101, 5)), (3, [])]
)
def test_a_final_accuracy_is_the_mean_over_the_last_rounds(end: int, tests: Sequence[int]) -> None:
    """With a test in every fifth round; before the first of them there is nothing."""
    rounds = [5 * number for number in range(1, 31)]
    lines = [SimpleNamespace(round=r, accuracy={"1.0x": 0.5}) for r in rounds]
    record = cast(RunRecord, SimpleNamespace(evaluated=lines))
    found = late_tests(record, "1.0x", STANDARD.last_share, end)
    assert [line.round for line in found] == [r for r in tests if r <= end]


def test_where_the_last_rounds_have_no_test_the_last_test_counts() -> None:
    lines = [SimpleNamespace(round=10, accuracy={"1.0x": 0.5})]
    record = cast(RunRecord, SimpleNamespace(evaluated=lines))
    assert late_tests(record, "1.0x", STANDARD.last_share, 40) == lines


def test_one_deviation_per_family_and_holm_over_all() -> None:
    contrasts = {
        "a": Paired({0: 3.0, 1: 3.2, 2: 3.4}),
        "b": Paired({0: -1.0, 1: 1.0, 2: 0.3}),
        "lone": Paired({0: 9.0}),
    }
    told = tell_apart(contrasts, dict.fromkeys(contrasts, "same"))
    shared = {told[key].contrast.deviation for key in "ab"}
    assert len(shared) == 1
    assert told["a"].p_holm == pytest.approx(2 * (told["a"].contrast.p_student or 0))
    assert told["a"].apart
    assert not told["b"].apart
    assert told["lone"].p_holm is None


def test_far_devices_are_the_farthest_quarter_and_weigh_labels_as_they_hold_them(
    cache: Path,
) -> None:
    cells = split_runs(TINY, "at rest", "0.8 and 0.2 for all")
    records = [record for cell in cells if (record := cell.record(cache))]
    found = _far(records, "1.0x")
    assert len(found) == TINY.seeds
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
        assert found[record.experiment.seed] == pytest.approx(sum(accuracies) / 5)


def test_one_message_in_a_longer_airtime_is_not_ranked() -> None:
    """Segments in turn that arrive only together are compared with nothing of another airtime."""

    def reached(name: str, percent: float, uploads: dict[int, int]) -> Result:
        entry = next(each for each in ENTRIES["cell"] if each.name == name)
        final = {"1.0x": Final({seed: percent + seed / 10 for seed in range(3)})}
        return Result(entry, final, final, 50.0, uploads, 1.0, 1.0, 1.0, 1.0)

    rival = reached("SHeteroFL", 70.0, {0: 10, 2: 10})
    together = reached("SlimFL (segments in turn)", 80.0, {0: 10, 2: 10})
    assert "SlimFL" not in _ranking("cell", [together, rival], "1.0x")
    parts = reached("SlimFL (segments in turn)", 80.0, {0: 10, 1: 1, 2: 9})
    assert "highest mean is SlimFL (segments in turn)" in _ranking("cell", [parts, rival], "1.0x")


def test_studies_that_read_one_run_to_different_ends_do_not_disturb_each_other() -> None:
    """SlimFL in `cell` at rest is a run of both; the rivals read twice as many rounds."""
    short = split_runs(STANDARD, "at rest", "per device, equal weights")
    asked = {
        cell.key: cell.rounds for cell in cells_of([STUDIES["split"], STUDIES["rivals"]], STANDARD)
    }
    assert STANDARD.rounds < STANDARD.rival_rounds
    assert {asked[cell.key] for cell in short} == {STANDARD.rival_rounds}
    lines = [SimpleNamespace(round=n) for n in range(1, STANDARD.rival_rounds + 1)]
    whole = short[0].experiment.model_copy(update={"rounds": STANDARD.rival_rounds})
    [read] = finished_runs(
        {short[0]: RunRecord(Path("run"), whole, {}, cast(list, lines), [])}, short
    )
    assert len(read.lines) == read.experiment.rounds == STANDARD.rounds
