"""The closing table: runs, groups over seeds, and the sum of Vanilla FL."""

import json
from statistics import pstdev, stdev

import pytest

import slimfl
from slimfl.results.frames import run_rows
from slimfl.results.per_run import run_summary
from slimfl.results.summary import summaries, summarise


def test_one_run_by_hand(make_run):
    row = run_summary(make_run(curves={"0.5x": [0.1, 0.5, 0.4], "1.0x": [0.2, 0.6, 0.9]}))
    assert row["method"] == "slimfl"
    assert (row["channel"], row["noise_dbm"], row["alpha"]) == ("poor", -40.0, 1.0)
    assert (row["rounds_done"], row["rounds_asked"], row["complete"]) == (3, 3, True)
    half = row["accuracy"]["0.5x"]
    assert half["final"] == pytest.approx(1 / 3)
    assert half["deviation"] == pytest.approx(pstdev([0.1, 0.5, 0.4]))
    assert half["best"] == 0.5
    first, second = row["segments"]
    # three rounds of two asked devices: segment 1 came 6 times of 6, segment 2 3 times of 6
    assert (first["delivered_share"], second["delivered_share"]) == (1.0, 0.5)
    # 8e6 bits are 1 MB
    assert (first["sent_mb"], first["decoded_mb"], first["dropped_mb"]) == (3.0, 3.0, 0.0)
    assert (second["sent_mb"], second["decoded_mb"], second["dropped_mb"]) == (6.0, 3.0, 3.0)
    assert (row["total"]["airtime_s"], row["total"]["energy_j"]) == (1.5, 0.75)
    assert row["total"]["paper_power_w"] == pytest.approx(0.6)
    assert row["total"]["paper_gflops"] == pytest.approx(0.012)
    assert row["converged_round"] is None
    assert row["until_converged"] is None
    # every round both devices see 100 images together, in 2 seconds
    assert row["images"] == 300
    assert row["images_per_s"] == 50


def test_final_accuracy_is_over_the_last_ten_evaluated_rounds(make_run):
    values = [0.0] * 5 + [0.1 * i for i in range(1, 11)]
    row = run_summary(make_run(curves={"1.0x": values}, method="vanilla-1.0x"))
    assert row["accuracy"]["1.0x"]["final"] == pytest.approx(0.55)


def test_rounds_without_evaluation_do_not_count(make_run):
    record = make_run(curves={"1.0x": [0.3, 0.9]}, method="vanilla-1.0x")
    record.lines[1] = record.lines[1].model_copy(update={"accuracy": {}})
    assert run_summary(record)["accuracy"]["1.0x"]["final"] == 0.3


def test_who_did_not_answer_was_asked_and_who_was_refused_did_not_deliver(make_run):
    row = run_summary(
        make_run(devices=[0], dropped_out=[1], decoded=[2], refused=[0], delivered=[0, 0])
    )
    assert [segment["delivered_share"] for segment in row["segments"]] == [0.0, 0.0]
    assert row["segments"][0]["asked"] == 4
    assert row["refused"] == 2


def test_a_segment_never_sent_has_no_share(paper_runs):
    vanilla = run_summary(paper_runs[1])
    assert vanilla["segments"][1]["delivered_share"] is None


def test_costs_until_convergence(make_run):
    section = {"federation__convergence_window": 2, "federation__convergence_accuracy": 0.7}
    row = run_summary(make_run(curves={"1.0x": [0.5, 0.8, 0.9, 0.9]}, method="vanilla-1.0x",
                           experiment=section))  # fmt: skip
    # the window of rounds 2 and 3 has mean 0.85 and deviation 0.05
    assert row["converged_round"] == 3
    assert row["until_converged"] is not None
    assert row["until_converged"]["rounds"] == 3
    assert row["until_converged"]["energy_j"] == 0.75
    assert row["until_converged"]["paper_power_w"] == pytest.approx(0.6)


def test_images_are_those_that_the_rounds_counted(make_run):
    keys = {"training__epochs": None, "training__steps": 5, "training__batch_size": 50}
    assert run_summary(make_run(experiment=keys, images=37))["images"] == 2 * 37


def test_images_of_a_version_that_did_not_count_them_are_unknown(make_run):
    record = make_run()
    record.lines[1] = record.lines[1].model_copy(update={"images": None})
    row = run_summary(record)
    assert (row["images"], row["images_per_s"]) == (None, None)


def test_a_run_that_has_not_begun_has_a_row(make_run):
    summary = summarise([make_run(curves={})])
    (row,) = summary.groups
    assert row.widths == []
    assert [row.mean(f"segments.{s}.delivered_share") for s in (1, 2)] == [None, None]
    assert not row.runs[0]["complete"]
    json.dumps(summary.as_json())


def test_over_seeds(paper_runs):
    rows = {row.method: row for row in summarise(paper_runs).groups}
    assert list(rows) == ["slimfl", "vanilla-0.5x", "vanilla-1.0x", "vanilla-1.5x"]
    slim = rows["slimfl"]
    assert slim.seeds == [0, 1]
    assert slim.accuracy_mean("0.5x") == pytest.approx((0.55 + 0.65) / 2)
    assert slim.accuracy_deviation("0.5x") == pytest.approx(stdev([0.55, 0.65]))
    assert slim.accuracy("0.5x", "best").mean() == pytest.approx(0.65)
    assert (slim.mean("total.energy_j"), slim.deviation("total.energy_j")) == (0.5, 0.0)


def test_the_same_seed_again_is_a_row_of_its_own_and_no_second_seed(make_run, tmp_path):
    methods = {"slimfl": None, "vanilla-0.5x": {"0.5x": [0.5]}, "vanilla-1.0x": {"1.0x": [0.7]}}
    runs = [
        make_run(method, seed, curves, name=f"{folder}/{method}-{seed}", experiment=engine)
        for folder, engine, seeds in (("a", {"engine": "torch"}, (0, 1)), ("b", {}, (0,)))
        for method, curves in methods.items()
        for seed in seeds
    ]
    groups = summarise(runs).groups
    assert [(row.name, row.seeds) for row in groups if row.method == "slimfl"] == [
        ("SlimFL, in a", [0, 1]),
        ("SlimFL, in b", [0]),
    ]
    # the runs of each folder are added up among themselves
    assert [(row.name, row.seeds) for row in groups if row.computed] == [
        ("Vanilla FL-1.5x, in a", [0, 1]),
        ("Vanilla FL-1.5x, in b", [0]),
    ]
    beside = [make_run(name=name) for name in ("one", "two")]
    assert [row.name for row in summarise(beside).groups] == ["SlimFL, in one", "SlimFL, in two"]


def test_energy_counts_uploads_that_were_cut_off(make_run):
    run = make_run(cut_off_energy_j=0.5)  # and 0.25 J for the others, in both rounds
    assert run_summary(run)["total"]["energy_j"] == 2 * (0.25 + 0.5)
    assert run_rows([run])[0]["energy_j"] == 2 * (0.25 + 0.5)
    assert slimfl.Run(run.experiment, run.lines, None, {}, list).energy_j == 2 * (0.25 + 0.5)


def test_one_seed_has_no_deviation_over_seeds(make_run):
    (row,) = summarise([make_run()]).groups
    assert row.deviation("total.energy_j") is None
    assert row.accuracy_deviation("0.5x") == pytest.approx(0.05), "that of the rounds instead"


def test_vanilla_of_all_widths_is_a_sum(paper_runs):
    summary = summarise(paper_runs)
    (row,) = [row for row in summary.runs if (row["method"], row["seed"]) == ("vanilla-1.5x", 1)]
    assert row["accuracy"]["0.5x"]["final"] == pytest.approx(0.55)
    assert row["accuracy"]["1.0x"]["final"] == pytest.approx(0.75)
    assert row["total"]["energy_j"] == pytest.approx(2 * (0.1 + 0.2))
    assert row["total"]["paper_power_w"] == pytest.approx(2 * 0.4)
    assert row["total"]["paper_gflops"] == pytest.approx(2 * (1 + 3) / 1e3)
    assert row["segments"][0]["sent_mb"] == pytest.approx(4.0)
    assert row["segments"][1]["sent_mb"] == pytest.approx(4.0)
    # segment 1: 4 of 4 from 0.5x and 2 of 4 from 1.0x; segment 2 is sent by 1.0x alone
    assert row["segments"][0]["delivered_share"] == 0.75
    assert row["segments"][1]["delivered_share"] == 0.5
    assert row["until_converged"] is None
    group = summary.groups[-1]
    assert (group.name, group.computed, group.seeds) == ("Vanilla FL-1.5x", True, [0, 1])


def test_summaries_are_plain_data_with_the_run_of_each_row(paper_runs):
    rows = summaries(paper_runs)
    assert json.loads(json.dumps(rows)) == rows
    assert [row["path"] is None for row in rows] == [False] * 6 + [True] * 2
    assert rows[0]["path"] == str(paper_runs[0].path)
    assert rows[0]["segments"][1]["delivered_share"] == 0.5
    assert rows[0]["images_per_s"] == 50


def test_vanilla_of_all_widths_stops_each_by_itself(make_run):
    section = {"federation__convergence_window": 2, "federation__convergence_accuracy": 0.7}
    half = make_run("vanilla-0.5x", curves={"0.5x": [0.8, 0.8, 0.8, 0.8]}, experiment=section)
    full = make_run("vanilla-1.0x", curves={"1.0x": [0.1, 0.2, 0.8, 0.8]}, experiment=section)
    row = summarise([half, full]).runs[-1]
    assert row["converged_round"] == 4
    assert row["until_converged"] is not None
    assert row["until_converged"]["energy_j"] == (2 + 4) * 0.25


def test_three_widths_need_three_vanilla_runs(make_run):
    three = {"model__widths": [0.25, 0.5, 1.0]}
    sizes = {"delivered": [1, 1, 1], "bits_sent": [8.0] * 3, "bits_decoded": [8.0] * 3,
             "bits_dropped": [0.0] * 3}  # fmt: skip
    runs = [
        make_run(f"vanilla-{width}x", curves={f"{width}x": [0.5]}, experiment=three, **sizes)
        for width in (0.25, 0.5, 1.0)
    ]
    assert [row["method"] for row in summarise(runs[:2]).runs] == ["vanilla-0.25x", "vanilla-0.5x"]
    last = summarise(runs).runs[-1]
    assert last["method"] == "vanilla-all"
    assert summarise(runs).groups[-1].name == "Vanilla FL-all"
    assert list(last["accuracy"]) == ["0.25x", "0.5x", "1.0x"]


def test_vanilla_runs_of_different_settings_are_not_added(make_run):
    half = make_run("vanilla-0.5x", curves={"0.5x": [0.5]})
    full = make_run("vanilla-1.0x", curves={"1.0x": [0.5]}, experiment={"data__alpha": 0.1})
    other_seed = make_run("vanilla-1.0x", seed=7, curves={"1.0x": [0.5]})
    assert len(summarise([half, full, other_seed]).runs) == 3
