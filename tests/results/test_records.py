"""Reading run folders: records, their order, refusals, and groups over seeds."""

from pathlib import Path

import pytest

from slimfl.errors import RequestError
from slimfl.results.groups import group
from slimfl.results.records import find, load


def test_a_record_holds_what_the_folder_says(make_run):
    record = make_run(seed=3)
    again = load(record.path)
    assert again == record
    assert again.experiment.seed == 3
    assert again.provenance["data_sha256"] == "ab" * 32
    assert [line["round"] for line in again.lines] == [1, 2]
    assert again.class_counts == [[30, 10], [0, 60]]


def test_find_takes_runs_and_folders_of_runs(paper_runs):
    folder = paper_runs[0].path.parent
    (folder / "notes").mkdir()
    found = find([folder])
    order = [(run.experiment.method, run.experiment.seed) for run in found]
    assert order == [
        ("slimfl", 0), ("slimfl", 1), ("vanilla-0.5x", 0), ("vanilla-0.5x", 1),
        ("vanilla-1.0x", 0), ("vanilla-1.0x", 1),
    ]  # fmt: skip
    given = find([folder / "vanilla-1.0x-seed1", folder])
    assert given[0].experiment.method == "vanilla-1.0x"
    assert len(given) == 6, "a run named twice is read once"
    (folder / "a-report.html").write_text("what a pattern of the shell names, too")
    assert len(find(sorted(folder.glob("*[!s]")))) == 6


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path / "absent", "there is no folder"),
        (lambda path: (path / "file.txt").write_text("x") and path / "file.txt", "is a file"),
        (lambda path: (path / "empty").mkdir() or path / "empty", "contains none"),
    ],
)
def test_what_is_no_run_is_refused_with_a_sentence(tmp_path: Path, make, words):
    path = make(tmp_path)
    with pytest.raises(RequestError, match=words) as error:
        find([path])
    assert "\n" not in str(error.value)
    assert "give" in str(error.value)


def test_a_line_of_another_version_is_refused(make_run):
    record = make_run()
    with (record.path / "metrics.jsonl").open("a") as file:
        file.write('{"round": 3, "accuracy": {}}\n')
    with pytest.raises(RequestError, match=r"line 3 of .*metrics.jsonl has no airtime_s"):
        load(record.path)


def test_runs_are_grouped_over_seeds_alone(make_run):
    records = [
        make_run(seed=1),
        make_run(seed=0, experiment={"engine": "torch", "threads": 1}),
        make_run(seed=0, name="other", experiment={"data__alpha": 0.1}),
        make_run("vanilla-0.5x", seed=0, curves={"0.5x": [0.5, 0.5]}),
    ]
    groups = group(records)
    assert [[run.experiment.seed for run in each.runs] for each in groups] == [[0, 1], [0], [0]]
    assert [each.name for each in groups] == ["SlimFL", "SlimFL", "Vanilla FL-0.5x"]
    assert [each.scene for each in groups] == [
        "poor channel, alpha 1", "poor channel, alpha 0.1", "poor channel, alpha 1"
    ]  # fmt: skip
    assert groups[0].setting == groups[2].setting != groups[1].setting


def test_what_a_person_varied_stands_in_the_name(make_run):
    groups = group([make_run(), make_run(name="b", experiment={"radio__split": "optimal"})])
    assert [each.name for each in groups] == ["SlimFL", "SlimFL (radio.split optimal)"]


def test_what_a_split_does_not_read_is_not_in_the_name(make_run):
    per_device = {"radio__split": "per-device"}
    bound = make_run(name="b", experiment=per_device)
    weighted = make_run(name="c", experiment={**per_device, "radio__split_objective": "weighted"})
    assert [each.name for each in group([make_run(), bound, weighted])] == [
        "SlimFL",
        "SlimFL (radio.split per-device, radio.split_objective bound)",
        "SlimFL (radio.split per-device, radio.split_objective weighted)",
    ]


def test_what_is_varied_is_not_part_of_the_scene(make_run):
    groups = group([make_run(), make_run(name="b", experiment={"radio__split": "optimal"})])
    assert {each.scene for each in groups} == {"poor channel"}
