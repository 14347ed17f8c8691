"""Exhibits without runs match the paper; the others follow their runs."""

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from slimfl import config
from slimfl.errors import RequestError
from slimfl.federation import RoundRecord, RunFolder
from slimfl.reproduction import paper
from slimfl.reproduction.cells.archive import pack
from slimfl.reproduction.cells.scale import ALPHAS, SCALES
from slimfl.reproduction.exhibits import RECIPES, choices, fig6
from slimfl.reproduction.exhibits import table3_runs as grid
from slimfl.reproduction.exhibits.exhibit import Final
from slimfl.reproduction.exhibits.table6 import decoded
from slimfl.reproduction.judging.check import differences, same_engine
from slimfl.reproduction.judging.verdict import Verdict
from slimfl.reproduction.reproduce import (
    as_csv,
    as_markdown,
    cells_of,
    missing,
    recipes,
    reproduce,
    unfinished,
    write,
)
from slimfl.results import RunRecord
from tests.hand_made_runs import PROVENANCE

SMOKE = SCALES["smoke"]


def show(name, runs=()):
    return RECIPES[name].show(SMOKE, dict(runs))


def ours(exhibit, claim):
    return [each.ours for each in exhibit.claims[claim].comparisons]


def test_names_are_the_papers():
    tables, figures = [f"table{n}" for n in (1, 3, 4, 5, 6, 7)], [f"fig{n}" for n in range(2, 8)]
    assert [recipe.name for recipe in recipes([])] == [*tables, *figures, "choices"]
    assert [recipe.name for recipe in recipes(["fig4", "table1"])] == ["table1", "fig4"]
    assert [recipe.name for recipe in recipes(["all", "vanilla"])][-2:] == ["choices", "vanilla"]
    with pytest.raises(RequestError, match="table2"):
        recipes(["table2"])


def test_table1_and_4_count_the_network_of_table1():
    exhibit = show("table1")
    assert exhibit.verdict is Verdict.AGREES
    full = sum(value for value in ours(exhibit, 0)[::2])
    half = sum(value for value in ours(exhibit, 0)[1::2])
    counts = show("table4")
    assert ours(counts, 1) == [full + 10, half + 10] == [4586, 1530]  # ten biases
    assert [round(value, 2) for value in ours(counts, 0)] == [3.09, 0.94]
    assert [round(value, 1) for value in ours(counts, 3)] == list(paper.POWER_MW)
    assert counts.claims[3].verdict is Verdict.AGREES
    assert counts.verdict is Verdict.ORDER


def test_table5_is_half_the_power_for_the_same_computing():
    exhibit = show("table5")
    assert [round(value, 1) for value in ours(exhibit, 0)] == [199.5, 399.1]
    assert ours(exhibit, 1)[0] == ours(exhibit, 1)[1] == pytest.approx(3.086464 + 0.94112)
    verdicts = [claim.verdict for claim in exhibit.claims]
    assert verdicts == [Verdict.AGREES, Verdict.DIFFERS, Verdict.AGREES]


#: NOTES.md's reading of table VI: p1, p2, Vanilla 0.5x, Vanilla 1.0x.
FREQUENCIES = {"good": (0.983, 0.964, 0.993, 0.973), "poor": (0.810, 0.632, 0.912, 0.704)}


@pytest.mark.parametrize("channel", FREQUENCIES)
def test_table6_is_the_papers_within_binomial_error(channel):
    p1, p2, narrow, wide = FREQUENCIES[channel]
    half = 172_688 / 2 * 10_000 / 8 / 2**20
    columns = decoded(channel, 10_000)
    expected = {
        "slimfl 0.5x": half * (p1 - p2),
        "slimfl 1.0x": 2 * half * p2,
        "slimfl drop": half * (2 - p1 - p2),
        "vanilla-0.5x": half * narrow,
        "vanilla-1.0x": 2 * half * wide,
    }
    for key, value in expected.items():
        mean, deviation = columns[key]
        assert mean == pytest.approx(value, abs=3 * math.sqrt(2) * deviation + 0.06)
        assert paper.TABLE6[channel][key] == pytest.approx(value, abs=0.16)
    assert sum(columns[k][0] for k in ("slimfl 0.5x", "slimfl 1.0x", "slimfl drop")) == (
        pytest.approx(2 * half)
    )
    assert show("table6").verdict is Verdict.AGREES


def test_the_deviation_of_dropped_bits_is_that_of_repeated_draws():
    """Against brute force: the drop of one upload is 0, 1 or 2 halves with known chances."""
    p1, p2 = FREQUENCIES["poor"][:2]
    half = 172_688 / 2 * 10_000 / 8 / 2**20
    mean = (p1 - p2) * 1 + (1 - p1) * 2
    variance = (p1 - p2) * 1 + (1 - p1) * 4 - mean**2
    assert decoded("poor", 10_000)["slimfl drop"][1] == pytest.approx(
        half * math.sqrt(variance / 10_000), rel=0.03
    )


def test_figure4_has_the_papers_split_and_the_printed_formula_fails():
    exhibit = show("fig4")
    assert [claim.verdict for claim in exhibit.claims] == [Verdict.AGREES, Verdict.DIFFERS]
    assert ours(exhibit, 1)[0] > 1
    assert exhibit.figure is not None


def test_figure3_deals_every_sample_once():
    from slimfl.config import DataSection
    from slimfl.data import load_section
    from slimfl.reproduction.exhibits.fig3 import class_counts, unevenness

    counts = class_counts(load_section(DataSection()), 0.1, 0)
    assert counts.sum() == 60_000
    assert (counts.sum(axis=0) == 6_000).all()
    assert show("fig3").verdict is Verdict.AGREES
    even = counts * 0 + 7
    assert unevenness(even) == 0


def record(cell, accuracy):
    """A run whose accuracy at the end is as given, in percent, with a wobble of ±1."""
    experiment = cell.experiment
    widths = [width for method, width in grid.CURVES if method == experiment.method]
    lines = []
    for number in range(1, experiment.rounds + 1):
        wobble = 1 if number % 2 else -1
        values = {
                "round": number,
                "accuracy": {w: (accuracy[experiment.method, w] + wobble) / 100 for w in widths},
                "devices": list(range(10)), "dropped_out": [], "refused": [],
                "decoded": [2] * 10, "delivered": [10, 10], "bits_sent": [1.0, 1.0],
                "bits_decoded": [1.0, 1.0], "bits_dropped": [0.0, 0.0], "airtime_s": 1.0,
                "energy_j": 1.0, "paper_power_mw": 199.5, "paper_mflops": 1.0,
                "seconds": {"training": 1.0, "evaluation": 1.0},
            }  # fmt: skip
        lines.append(RoundRecord.model_validate(values))
    return RunRecord(Path(cell.name), experiment, {}, lines, [])


def papers_runs(cells, change=lambda key, value: value):
    """Runs with exactly the accuracies of table III, perhaps changed."""
    runs = {}
    for cell in cells:
        column = paper.TABLE3[cell.experiment.radio.channel, cell.experiment.data.alpha]
        accuracy = {tuple(key.split(" ")): change(key, mean) for key, (mean, _) in column.items()}
        runs[cell] = record(cell, accuracy)
    return runs


LONG = replace(SMOKE, rounds=dict.fromkeys(ALPHAS, 8))


def test_table3_with_the_papers_own_numbers_agrees():
    exhibit = RECIPES["table3"].show(LONG, papers_runs(grid.all_cells(LONG)))
    assert all(claim.verdict is Verdict.AGREES for claim in exhibit.claims[:7])
    # all fluctuate alike in these runs, and the paper says that they do not
    assert exhibit.claims[7].verdict is Verdict.DIFFERS


def test_table3_notices_a_reversal_and_a_shift():
    swapped = papers_runs(
        grid.all_cells(LONG), lambda key, value: 90 - value if key.startswith("v") else value
    )
    exhibit = RECIPES["table3"].show(LONG, swapped)
    assert exhibit.claims[0].verdict is Verdict.DIFFERS
    lower = papers_runs(grid.all_cells(LONG), lambda key, value: value - 25)
    column = RECIPES["table3"].show(LONG, lower).claims[3]
    assert column.source == "table III, poor, alpha = 0.1"
    assert column.verdict is Verdict.ORDER


def test_figure2_compares_after_as_many_steps_too():
    runs = {}
    for cell in RECIPES["fig2"].cells(LONG):
        steady = record(cell, dict.fromkeys(grid.CURVES, 50))
        rising = [
            line.model_copy(update={"accuracy": dict.fromkeys(line.accuracy, line.round / 100)})
            for line in steady.lines
        ]
        runs[cell] = replace(steady, lines=rising)
    rows = RECIPES["fig2"].show(LONG, runs).table.rows
    assert [row[0] for row in rows[3:]] == [
        "USTrain, half the rounds",
        "SlimTrain, half the rounds",
    ]
    for row in rows[:3]:
        assert row[1:] == ["6.5 ± 1.1"] * 4  # the last half of 8 rounds: 5 to 8
    for row in rows[3:]:
        assert row[1:] == ["3.5 ± 0.5"] * 4  # the last half of 4 rounds: 3 and 4
    claims = RECIPES["fig2"].show(LONG, runs).claims
    assert all("+3.0 and +3.0 points (0.5x and 1.0x)" in each.explanation for each in claims[:4])
    assert claims[4].explanation == ""  # SlimTrain and USTrain take as many steps
    begun = {cell: replace(run, lines=run.lines[:2]) for cell, run in runs.items()}
    unfinished = RECIPES["fig2"].show(LONG, begun)
    assert "unfinished" in unfinished.table.rows[3][1]
    assert unfinished.claims[0].explanation == ""


def test_figure6_compares_after_as_many_steps_per_device_too():
    runs = {}
    for cell in RECIPES["fig6"].cells(LONG):
        steady = record(cell, dict.fromkeys(grid.CURVES, 50))
        rising = [
            line.model_copy(update={"accuracy": {"0.5x": line.round / 100, "1.0x": 0.5}})
            for line in steady.lines
        ]
        runs[cell] = replace(steady, lines=rising)
    _, uneven, even, *_ = RECIPES["fig6"].show(LONG, runs).notes
    assert uneven.startswith("α = 0.1, at equal local steps")
    # 8 rounds with 20 devices are the steps of 4 with 10: rounds 4 to 8, and 1 to 4
    assert "2.5 / 50.0% with 10 devices (round 4), 6.0 / 50.0% with 20 devices (round 8)" in even
    begun = {cell: replace(run, lines=run.lines[:7]) for cell, run in runs.items()}
    assert not any("equal local" in note for note in RECIPES["fig6"].show(LONG, begun).notes)


@pytest.mark.parametrize(("full", "told"), [(0.3, True), (0.4, False)])
def test_a_half_that_was_erased_is_told(full, told):
    """Told only if nothing arrived in a round, and both widths are the same since then."""
    [cell] = choices.setting(LONG, "extremely poor channel, missing = zero")
    lines = [
        line.model_copy(
            update={
                "accuracy": {"0.5x": 0.3, "1.0x": full if line.round >= 5 else 0.5},
                "delivered": [10, 0 if line.round in (5, 7) else 3],
            }
        )
        for line in record(cell, dict.fromkeys(grid.CURVES, 50)).lines
    ]
    run = replace(record(cell, dict.fromkeys(grid.CURVES, 50)), lines=lines)
    words = " ".join(RECIPES["choices"].show(LONG, {cell: run}).notes)
    assert ("the right half in round 5, and both widths have the same" in words) is told
    arrived = [line.model_copy(update={"delivered": [10, 3]}) for line in lines]
    words = " ".join(RECIPES["choices"].show(LONG, {cell: replace(run, lines=arrived)}).notes)
    assert "erased" not in words


def test_figure5_compares_settings_over_the_same_seeds():
    scale = replace(LONG, seeds_curves=3)
    cells = RECIPES["fig5"].cells(scale)
    equal, unequal = cells[6:9], cells[9:12]  # three seeds of each setting
    runs = {
        cell: record(cell, dict.fromkeys(grid.CURVES, 60 + 10 * cell.experiment.seed))
        for cell in [*equal, unequal[0]]
    }
    exhibit = RECIPES["fig5"].show(scale, runs)
    assert [row[2] for row in exhibit.table.rows[2:]] == ["60.0 ± 1.0 (1 of 3 seeds)"] * 2
    assert exhibit.claims[2].differences[0].mean == 0
    assert exhibit.table.rows[0][1] == "not run"
    drawn = exhibit.figure.axes[1].lines  # with three seeds, 70 would be drawn
    assert len(drawn) == 4
    assert all(max(line.get_ydata()) == 61 for line in drawn)


def cut_short(runs, cells):
    for cell in cells:
        runs[cell] = replace(runs[cell], lines=runs[cell].lines[:-1])


def test_unfinished_runs_are_shown_and_not_judged():
    runs = papers_runs(grid.all_cells(LONG))
    cut_short(runs, grid.setting(LONG, "poor", 0.1, "slimfl"))  # with both seeds
    exhibit = RECIPES["table3"].show(LONG, runs)
    verdicts = {claim.source: claim.verdict for claim in exhibit.claims[:6]}
    assert verdicts.pop("table III, poor, alpha = 0.1") is Verdict.UNFINISHED
    assert set(verdicts.values()) == {Verdict.AGREES}
    assert as_markdown(exhibit.table).count("unfinished") == 2  # two widths
    verdicts = {claim.verdict for claim in RECIPES["fig7"].show(LONG, runs).claims}
    assert Verdict.UNFINISHED in verdicts


def column(exhibit, source):
    return next(claim for claim in exhibit.claims if claim.source == source)


def test_a_verdict_rests_on_the_seeds_that_all_methods_have_finished():
    cells = grid.all_cells(LONG)
    runs = papers_runs(cells)
    slimfl = grid.setting(LONG, "poor", 0.1, "slimfl")
    vanilla = grid.setting(LONG, "poor", 0.1, "vanilla-1.0x")
    # seed 1 differs by so much that any use of it would be noticed
    far = papers_runs([slimfl[1], vanilla[1]], lambda key, value: value - 25)
    runs |= far
    cut_short(runs, [vanilla[1]])
    exhibit = RECIPES["table3"].show(LONG, runs)
    judged = column(exhibit, "table III, poor, alpha = 0.1")
    assert (judged.verdict, judged.seeds, judged.seeds_planned) == (Verdict.AGREES, 1, 2)
    for each in judged.comparisons:
        assert each.ours == pytest.approx(each.paper)
        assert set(each.by_seed) == {0}
    assert {each.seeds for each in judged.differences} == {1}
    whole = column(exhibit, "table III, good, alpha = 0.1")
    assert (whole.seeds, whole.seeds_planned) == (2, None)
    # the table shows all that each method has: both seeds of SlimFL, one of Vanilla FL-1.0x
    place = exhibit.table.headings.index("poor, α = 0.1")
    shown = {row[0]: row[place] for row in exhibit.table.rows if row[1] == "ours"}
    assert shown["SlimFL-1.0x"].startswith("52.5 ± 1.0 (seeds ± 17.7)")
    assert shown["Vanilla FL-1.0x"] == "55.0 ± 1.0 (1 of 2 seeds)"


def test_methods_without_a_common_seed_are_not_compared():
    runs = papers_runs(grid.all_cells(LONG))
    del runs[grid.setting(LONG, "poor", 1.0, "slimfl")[0]]
    del runs[grid.setting(LONG, "poor", 1.0, "vanilla-0.5x")[1]]
    exhibit = RECIPES["table3"].show(LONG, runs)
    assert column(exhibit, "table III, poor, alpha = 1").verdict is Verdict.UNFINISHED


def test_a_loss_between_channels_is_over_the_seeds_that_both_have():
    cells = RECIPES["fig7"].cells(LONG)
    runs = papers_runs([cell for cell in cells if cell.experiment.radio.channel in grid.CHANNELS])
    poor = grid.setting(LONG, "poor", 1.0, "vanilla-1.0x")
    runs |= papers_runs([poor[1]], lambda key, value: value - 25)
    del runs[grid.setting(LONG, "good", 1.0, "vanilla-1.0x")[1]]
    lost = RECIPES["fig7"].show(LONG, runs).claims[0]
    printed = [paper.TABLE3[channel, 1.0]["vanilla-1.0x 1.0x"][0] for channel in ("good", "poor")]
    assert lost.comparisons[0].ours == pytest.approx(printed[0] - printed[1])
    assert (lost.seeds, lost.seeds_planned) == (1, 2)


def test_a_seed_that_may_still_converge_does_not_hold_up_the_costs_of_others():
    scale = replace(LONG, convergence_accuracy=0.99, seeds=3)  # so that nothing has converged
    runs = papers_runs(grid.all_cells(scale))
    cut_short(runs, [cell for cell in runs if cell.experiment.seed == 1])
    claims = RECIPES["table7"].show(scale, runs).claims
    assert {claim.verdict for claim in claims} == {Verdict.UNDECIDED}  # none ever converged
    assert {(claim.seeds, claim.seeds_planned) for claim in claims[:-2]} == {(2, 3)}
    cut_short(runs, [cell for cell in runs if cell.experiment.seed == 0])
    claims = RECIPES["table7"].show(scale, runs).claims
    assert {claim.verdict for claim in claims} == {Verdict.UNFINISHED}  # one seed has no spread


def test_the_fluctuation_of_one_seed_has_the_error_of_a_standard_deviation():
    """Against brute force: many series of independent normal accuracies."""
    import numpy as np

    rounds, spread = 16, 2.0
    series = np.random.default_rng(0).normal(60, spread, (20_000, rounds))
    cell = grid.setting(replace(LONG, rounds=dict.fromkeys(ALPHAS, rounds)), "poor", 0.1, "slimfl")
    run = record(cell[0], {("slimfl", "0.5x"): 60, ("slimfl", "1.0x"): 60})
    for line, value in zip(run.lines, series[0], strict=True):
        line.accuracy["0.5x"] = value / 100
    final = Final.of([run], "0.5x", last=rounds)
    assert final.over_rounds == pytest.approx(series[0].std())
    assert final.over_rounds_spread == pytest.approx(
        final.over_rounds * series.std(axis=1).std() / spread, rel=0.05
    )


def test_a_cost_until_convergence_needs_no_further_rounds():
    scale = replace(LONG, convergence_accuracy=0.2)
    runs = papers_runs(grid.all_cells(scale))
    for cell in runs:
        runs[cell] = replace(runs[cell], lines=runs[cell].lines[:-1])
    whole, cut = papers_runs(grid.all_cells(scale)), runs
    shown = [RECIPES["table7"].show(scale, each) for each in (whole, cut)]
    assert shown[0].table == shown[1].table
    assert [c.verdict for c in shown[0].claims] == [c.verdict for c in shown[1].claims]


def test_exhibits_of_nothing_say_so():
    for name, recipe in RECIPES.items():
        if recipe.cells(SMOKE):
            exhibit = show(name)
            assert exhibit.verdict in (Verdict.NOT_RUN, Verdict.NONE), name
            assert "not run" in as_markdown(exhibit.table)


def test_final_is_the_mean_over_the_last_rounds_of_every_seed():
    first, second = (grid.setting(LONG, "poor", 0.1, "slimfl")[seed] for seed in (0, 1))
    runs = [
        record(first, {("slimfl", "0.5x"): 50, ("slimfl", "1.0x"): 60}),
        record(second, {("slimfl", "0.5x"): 54, ("slimfl", "1.0x"): 60}),
    ]
    final = Final.of(runs, "0.5x", last=4)
    assert (final.mean, final.seeds) == (pytest.approx(52), 2)
    assert final.over_seeds == pytest.approx(math.sqrt(8))  # of 50 and 54, with n - 1
    assert final.over_rounds == pytest.approx(1)
    assert Final.of(runs, "0.5x", last=1).mean == pytest.approx(51)  # the last round wobbles down
    assert Final.of([], "0.5x", last=1) is None


def test_the_end_of_an_unfinished_run_is_shorter_in_proportion():
    whole = record(
        grid.setting(LONG, "poor", 0.1, "slimfl")[0], {("slimfl", w): 50 for w in ("0.5x", "1.0x")}
    )
    half = replace(whole, lines=whole.lines[:4])
    half.lines[1]["accuracy"]["0.5x"] = 0.0  # not among the last two of four rounds
    assert Final.of([half], "0.5x", last=4).mean == pytest.approx(50)
    assert Final.of([half], "0.5x", last=6).mean == pytest.approx(100 / 3)


def test_tables_keep_their_cells_in_csv_and_markdown():
    table = show("table6").table
    assert list(csv.reader(io.StringIO(as_csv(table)))) == [table.headings, *table.rows]
    assert as_markdown(table).count("\n") == len(table.rows) + 2


@pytest.fixture
def counted(tmp_path):
    """A reproduction of what needs no runs."""
    chosen = recipes(["table1", "table4", "table5", "table6", "fig4"])
    exhibits = reproduce(chosen, SMOKE, tmp_path / "cells", workers=1)
    return write(exhibits, SMOKE, tmp_path / "out", "slimfl reproduce"), tmp_path / "out"


def one_round(job):
    """The metrics of a run that has done one round without an evaluation."""
    segments, devices = [0.0] * len(job.experiment.model.widths), []
    line = {
        "round": 1, "accuracy": {}, "devices": devices, "dropped_out": [], "refused": [],
        "decoded": [], "delivered": [0 for _ in segments], "bits_sent": segments,
        "bits_decoded": segments, "bits_dropped": segments, "airtime_s": 0.0, "energy_j": 0.0,
        "paper_power_mw": 0.0, "paper_mflops": 0.0, "seconds": {"training": 0.0},
    }  # fmt: skip
    (job.folder / "metrics.jsonl").write_text(json.dumps(line) + "\n")


def test_what_is_unfinished_is_told(tmp_path):
    chosen = recipes(["table3"])
    asked = len(grid.all_cells(SMOKE))
    assert missing(recipes(["table6"]), SMOKE, tmp_path) == []
    assert unfinished(chosen, SMOKE, []) == ""
    absent = missing(chosen, SMOKE, tmp_path)
    assert unfinished(chosen, SMOKE, absent) == f"0 of {asked} runs are finished."
    job = grid.all_cells(SMOKE)[0].job(tmp_path)
    RunFolder.create(job.folder, job.experiment, PROVENANCE)
    one_round(job)
    absent = missing(chosen, SMOKE, tmp_path)
    assert len(absent) == asked
    first = {"run": job.name, "rounds_done": 1, "rounds": 5}
    assert absent[0] == {**first, "needed_for": ["table3"]}
    lacking = unfinished(chosen, SMOKE, absent)
    assert lacking.endswith("In progress: slimfl-poor-alpha0.1-seed0 at round 1 of 5.")
    document = write([], SMOKE, tmp_path / "out", "slimfl reproduce", lacking, absent)
    assert (document["unfinished"], document["missing"]) == (lacking, absent)
    page = (tmp_path / "out/index.html").read_text()
    assert lacking in page
    for each in absent:
        assert f"{each['run']}: {each['rounds_done']} of 5 rounds, needed for table3" in page
    # a run of figure 6 alone, and one that it shares with table III
    needed_for = {
        each["run"]: each["needed_for"]
        for each in missing(recipes(["table3", "fig6"]), SMOKE, tmp_path)
    }
    with_20_devices = fig6.setting(SMOKE, 0.1, 20)[0]
    assert needed_for[with_20_devices.name] == ["fig6"]
    assert needed_for[job.name] == ["table3", "fig6"]


def test_seed_0_of_all_settings_is_computed_first():
    chosen = recipes(["all"])
    for scale in SCALES.values():
        cells = cells_of(chosen, scale)
        seeds = [cell.experiment.seed for cell in cells]
        assert seeds == sorted(seeds)
        assert len(set(cells)) == len(cells)
        first = [cell.experiment.radio.channel for cell in cells[:6]]
        assert first == ["poor"] * 3 + ["good"] * 3


def test_everything_is_written(counted):
    document, out = counted
    assert json.loads((out / "results.json").read_text()) == document
    for exhibit in document["exhibits"]:
        assert (out / "tables" / f"{exhibit['name']}.csv").stat().st_size > 0
        assert (out / "tables" / f"{exhibit['name']}.md").stat().st_size > 0
    assert (out / "figures" / "fig4.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "figures" / "fig4.pdf").read_bytes().startswith(b"%PDF")
    assert (out / "index.html").stat().st_size > 0


def test_check_tells_a_changed_number(counted):
    document, _ = counted
    copy = json.loads(json.dumps(document))
    assert same_engine(document, copy)
    assert differences(document, copy) == []
    copy["exhibits"][1]["table"]["rows"][0][2] = "3.10"
    assert len(differences(document, copy)) == 1
    elsewhere = json.loads(json.dumps(document)) | {"engine": "another"}
    assert not same_engine(document, elsewhere)
    assert differences(document, elsewhere) == []
    row = elsewhere["exhibits"][3]["claims"][0]["comparisons"][1]
    row["ours"] += 2 * math.sqrt(2) * row["ours_deviation"] * 0.99
    assert differences(document, elsewhere) == []
    row["ours"] += 2 * math.sqrt(2) * row["ours_deviation"] * 0.02
    assert len(differences(document, elsewhere)) == 1


def test_a_cell_of_the_grid_is_the_default_run_but_for_the_scale():
    cell = grid.setting(SCALES["paper"], "poor", 1.0, "slimfl")[0].experiment
    plain = config.load(training__epochs=1, rounds=1000, threads=1)[0]
    assert cell == plain


def test_table7_counts_to_the_first_round_of_the_window():
    from slimfl.reproduction.exhibits.table7 import until_convergence

    cell = grid.setting(LONG, "poor", 0.1, "slimfl")[0]
    run = record(cell, {("slimfl", "0.5x"): 50, ("slimfl", "1.0x"): 60})
    assert LONG.convergence_window == 2
    assert until_convergence(run).rounds == 1  # rounds 1 and 2 pass, so it had converged in 1
    run.lines[1]["accuracy"]["0.5x"] = -0.4  # rounds 1-2 and 2-3 fail
    assert until_convergence(run).rounds == 3
    low = record(cell, {("slimfl", "0.5x"): 15, ("slimfl", "1.0x"): 60})
    assert until_convergence(low) is None
    exhibit = RECIPES["table7"].show(LONG, papers_runs(grid.all_cells(LONG)))
    slim, vanilla = exhibit.claims[0].comparisons
    assert slim.ours == pytest.approx(0.1995)
    assert vanilla.ours == pytest.approx(2 * 0.1995)


def test_table7_says_how_many_seeds_converged_if_not_all_did():
    runs = papers_runs(grid.all_cells(LONG))
    slow = grid.setting(LONG, "poor", 10.0, "vanilla-0.5x")
    runs |= papers_runs(slow[1:], lambda key, value: 15)  # below the threshold
    exhibit = RECIPES["table7"].show(LONG, runs)
    words = {(row[0], row[1], row[2]): row[-1] for row in exhibit.table.rows}
    assert words["W", "poor", "10"] == words["GFLOPS", "poor", "10"] == "only in 1 of 2 seeds"
    reached = [c["comparisons"][1].get("seeds_reached") for c in exhibit.as_json()["claims"][:12]]
    assert (reached.count(1), reached.count(None)) == (2, 10)
    runs |= papers_runs(slow, lambda key, value: 15)
    exhibit = RECIPES["table7"].show(LONG, runs)
    assert [row[-1] for row in exhibit.table.rows].count("never") == 2


def test_the_study_of_vanilla_measures_the_distance_from_the_papers_column():
    from slimfl.reproduction.exhibits import vanilla

    cells = vanilla.cells(LONG)
    assert len(set(cells)) == len(cells)
    usual = set(vanilla.setting(LONG, "as everywhere else", "slimfl"))
    assert usual <= set(grid.all_cells(LONG))  # table III's own runs
    off = {"slimfl 0.5x": 2, "slimfl 1.0x": 0, "vanilla-0.5x 0.5x": 6, "vanilla-1.0x 1.0x": 0}
    runs = papers_runs(cells, lambda key, value: value + off[key])
    missing = vanilla.setting(LONG, "batches of 64", "vanilla-1.0x")[0]
    del runs[missing]
    exhibit = vanilla.show(LONG, runs)
    rows = {row[0]: row for row in exhibit.table.rows}
    assert rows["the paper"][1:7] == ["56", "65", "39", "55", "+17", "+10"]
    distance = f"{math.sqrt((4 + 36) / 4):.1f}"
    assert rows["as everywhere else"][-4:] == ["+13.0", "+10.0", distance, "1"]
    assert rows["batches of 64"][-4:] == ["+13.0", "not run", "not run", "1"]
    assert len(rows) == 1 + len(vanilla.NAMES)
    assert exhibit.notes[1] == "The whole column was run with 10 of 11 readings."


def test_a_reading_is_measured_over_the_seeds_that_its_methods_share():
    from slimfl.reproduction.exhibits import vanilla

    two = replace(LONG, seeds_study=2)
    runs = papers_runs(vanilla.cells(two))
    second = vanilla.setting(two, vanilla.USUAL, "vanilla-0.5x")[1]
    runs |= papers_runs([second], lambda key, value: value + 30)
    del runs[vanilla.setting(two, vanilla.USUAL, "slimfl")[1]]
    rows = {row[0]: row for row in vanilla.show(two, runs).table.rows}
    assert rows[vanilla.USUAL][-2:] == ["0.0", "1"]


def test_a_reading_for_vanilla_alone_takes_slimfl_from_the_usual_one():
    from slimfl.reproduction.exhibits import vanilla

    (alone,) = vanilla.ALONE
    shared = vanilla.ALONE[alone]
    runs = papers_runs(vanilla.cells(LONG))
    zero = [c for m in grid.METHODS for c in vanilla.setting(LONG, shared, m)]
    runs |= papers_runs(zero, lambda key, value: value - 20)
    rows = {row[0]: row for row in vanilla.show(LONG, runs).table.rows}
    assert rows[alone][1:3] == rows[vanilla.USUAL][1:3] != rows[shared][1:3]
    assert rows[alone][3:5] == rows[shared][3:5] != rows[vanilla.USUAL][3:5]


def test_the_study_of_vanilla_names_the_nearest_reading():
    from slimfl.reproduction.exhibits import vanilla

    assert vanilla.answer([vanilla.Reading("a", [None] * 4)]) == []
    cells = vanilla.cells(LONG)
    runs = papers_runs(cells, lambda key, value: value + 30)
    # harms all methods alike: right for Vanilla FL, wrong for SlimFL
    harmful = [c for m in grid.METHODS for c in vanilla.setting(LONG, "learning rate 0.01", m)]
    runs |= papers_runs(harmful, lambda key, value: 39 if "0.5x" in key else 55)
    nearer = [c for m in grid.METHODS for c in vanilla.setting(LONG, "batches of 64", m)]
    runs |= papers_runs(nearer, lambda key, value: value + 8)
    alone, whole, agree, ahead, both = vanilla.show(LONG, runs).notes[:5]
    assert "“learning rate 0.01” with 39.0 and 55.0 (“as everywhere else”: 69.0 and 85.0)" in alone
    assert "“batches of 64”, 8.0 points away (“as everywhere else”: 30.0)" in whole
    assert "+17.0 and +10.0 points; in the paper it is +17 and +10" in whole
    assert agree.endswith("with: no reading.")
    assert "“as everywhere else”" in ahead  # all are as far apart as in the paper
    assert "“learning rate 0.01”" not in ahead
    assert both == "Both hold with: no reading."
    runs |= papers_runs(nearer)
    agree, _, both = vanilla.show(LONG, runs).notes[2:5]
    assert agree.endswith("with: “batches of 64”.")
    assert both == "Both hold with: “batches of 64”."


def test_a_clone_with_the_archive_alone_shows_the_same(tmp_path):
    """Runs made here, packed, and read in an empty cache through the archive."""
    scale = replace(SMOKE, rounds=dict.fromkeys(ALPHAS, 1), seeds=1, steps=1)
    chosen = [replace(RECIPES["table3"], cells=lambda scale: grid.all_cells(scale)[:2])]
    here, clone, archive = tmp_path / "here", tmp_path / "clone", tmp_path / "archive"
    shown = reproduce(chosen, scale, here, workers=1)
    for cell in cells_of(chosen, scale):
        assert pack(cell, here, archive)
    again = reproduce(chosen, scale, clone, run=False, archive=archive)
    assert again[0].as_json() == shown[0].as_json()
    assert "not run" not in again[0].table.rows[1][5]
    assert missing(chosen, scale, clone) == []
    assert reproduce(chosen, scale, tmp_path / "none", run=False)[0].as_json() != shown[0].as_json()
