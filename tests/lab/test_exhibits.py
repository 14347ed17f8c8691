"""Exhibits without runs match the paper; the others follow their runs."""

import csv
import io
import json
import math
from pathlib import Path

import pytest

from lab import paper
from lab.catalogue import EXHIBITS, chosen
from lab.exhibits.accuracies import arm_of, fig6_arm, grid_arm, grid_cells
from lab.exhibits.arms import CURVES
from lab.exhibits.formulas import decoded
from lab.judge import Verdict
from lab.make import differences, make, same_engine, write
from lab.question import final, fluctuations
from lab.scale import ALPHAS, scale
from slimfl.errors import RequestError
from slimfl.results.records import RunRecord
from slimfl.round import RoundRecord

SMOKE = scale("smoke")
LONG = SMOKE.model_copy(update={"rounds": dict.fromkeys(ALPHAS, 8)})
EXACT = LONG.model_copy(update={"steps": None})


def show(name, runs=(), size=SMOKE):
    return EXHIBITS[name].answer(size, dict(runs))


def test_names_are_the_papers():
    tables, figures = [f"table{n}" for n in (1, 3, 4, 5, 6, 7)], [f"fig{n}" for n in range(2, 8)]
    assert [each.name for each in chosen(EXHIBITS, [])] == [*tables, *figures, "budget", "choices"]
    assert [each.name for each in chosen(EXHIBITS, ["fig4", "table1"])] == ["table1", "fig4"]
    with pytest.raises(RequestError, match="table2"):
        chosen(EXHIBITS, ["table2"])


def test_what_was_copied_or_fitted_is_by_construction():
    for name in ("table1", "table4", "table6", "fig3"):
        assert {claim.verdict for claim in show(name).claims} == {Verdict.CONSTRUCTION}, name


def test_table1_and_4_count_the_network_of_table1():
    assert show("table1").claims[0].ours == "the same in every layer"
    rows = {row[0]: row[1:] for row in show("table4").tables[0].rows}
    assert rows["parameters"] == ["4,586", "4,586", "2,293", "1,530"]
    assert rows["million multiply-adds"] == ["2.76", "3.09", "0.79", "0.94"]
    power = rows["transmit power, mW"]
    assert power[0::2] == power[1::2]


def test_table5_is_half_the_power_for_the_same_computing():
    answer = show("table5")
    assert [claim.ours for claim in answer.claims] == ["2.00", "1.00"]
    assert {claim.verdict for claim in answer.claims} == {Verdict.REPRODUCED}
    assert answer.tables[0].rows[0][1:] == ["199.5", "199.5", "399.1", "399.1"]


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
        assert paper.printed("table6")[channel][key] == pytest.approx(value, abs=0.16)
    whole = sum(columns[key][0] for key in ("slimfl 0.5x", "slimfl 1.0x", "slimfl drop"))
    assert whole == pytest.approx(2 * half)


def test_the_deviation_of_dropped_bits_is_that_of_repeated_draws():
    """Against brute force: the drop of one upload is 0, 1 or 2 halves with known chances."""
    p1, p2 = FREQUENCIES["poor"][:2]
    half = 172_688 / 2 * 10_000 / 8 / 2**20
    mean = (p1 - p2) * 1 + (1 - p1) * 2
    variance = (p1 - p2) * 1 + (1 - p1) * 4 - mean**2
    assert decoded("poor", 10_000)["slimfl drop"][1] == pytest.approx(
        half * math.sqrt(variance / 10_000), rel=0.03
    )


def test_figure4_has_the_papers_split_by_formula_and_search():
    answer = show("fig4")
    assert {claim.verdict for claim in answer.claims} == {Verdict.REPRODUCED}
    assert {claim.ours for claim in answer.claims} == {"0.662"}


def test_figure3_deals_every_sample_once():
    from lab.exhibits.formulas import class_counts, unevenness
    from slimfl.data import load_section
    from slimfl.experiment import DataSection

    counts = class_counts(load_section(DataSection()), 0.1, 0)
    assert counts.sum() == 60_000
    assert (counts.sum(axis=0) == 6_000).all()
    assert unevenness(counts * 0 + 7) == 0
    far, near = (float(row[1]) for row in show("fig3").tables[0].rows)
    assert far > near


def record(cell, percent):
    """A run with the accuracies that a function gives by width and round, in percent."""
    experiment = cell.experiment
    widths = [width for method, width in CURVES if method == experiment.method]
    lines = [
        RoundRecord.model_validate(
            {
                "round": number,
                "accuracy": {w: percent(w, number) / 100 for w in widths},
                "devices": list(range(10)), "dropped_out": [], "refused": [],
                "decoded": [2] * 10, "delivered": [10, 10], "bits_sent": [1.0, 1.0],
                "bits_decoded": [1.0, 1.0], "bits_dropped": [0.0, 0.0], "airtime_s": 1.0,
                "energy_j": ENERGY_J[experiment.method], "paper_power_mw": 199.5,
                "paper_mflops": 1.0, "seconds": {"training": 1.0, "evaluation": 1.0},
            }
        )
        for number in range(1, experiment.rounds + 1)
    ]  # fmt: skip
    return RunRecord(Path(cell.name), experiment, {}, lines, [])


#: As with rates by size: both Vanilla FL runs together take 5/3 of SlimFL's energy.
ENERGY_J = {"slimfl": 3.0, "vanilla-0.5x": 2.0, "vanilla-1.0x": 3.0}


def papers_runs(cells):
    """Runs that end with exactly the accuracies of table III, with a wobble of ±1."""
    runs = {}
    for cell in cells:
        one = cell.experiment
        column = paper.table3(one.radio.channel, one.data.alpha)
        runs[cell] = record(
            cell,
            lambda w, n, c=column, m=one.method: c[f"{m} {w}"][0] + (1 if n % 2 else -1),
        )
    return runs


def rising(cells):
    return {cell: record(cell, lambda width, number: number) for cell in cells}


def short(runs, cells):
    for cell in cells:
        runs[cell] = RunRecord(
            runs[cell].path, runs[cell].experiment, {}, runs[cell].lines[:-1], []
        )


def test_table3_with_the_papers_own_numbers_is_reproduced():
    answer = show("table3", papers_runs(grid_cells(EXACT)), EXACT)
    leads = {c.name: c for c in answer.claims if c.effect is not None}
    for name, claim in leads.items():
        assert claim.contrast.mean == pytest.approx(claim.effect), name
        assert claim.verdict is Verdict.REPRODUCED, name
        assert claim.is_preliminary
    # all fluctuate alike in these runs
    for each in (c for c in answer.claims if c.effect is None):
        assert each.contrast.mean == pytest.approx(1)
        assert each.verdict is Verdict.INCONCLUSIVE


def test_unfinished_runs_are_shown_and_not_judged():
    runs = papers_runs(grid_cells(EXACT))
    short(runs, grid_arm("poor", 0.1, "slimfl").cells(EXACT))  # with both seeds
    answer = show("table3", runs, EXACT)
    open_claims = {c.name for c in answer.claims if c.verdict is Verdict.NONE}
    assert open_claims == {"lead poor 0.1 1.0x", "lead poor 0.1 0.5x"}
    assert answer.tables[0].as_markdown().count("unfinished") == 2  # two widths


def test_a_verdict_rests_on_the_seeds_that_all_methods_have_finished():
    runs = papers_runs(grid_cells(EXACT))
    short(runs, [grid_arm("poor", 0.1, "vanilla-1.0x").cells(EXACT)[1]])
    claims = {claim.name: claim for claim in show("table3", runs, EXACT).claims}
    assert claims["lead poor 0.1 1.0x"].seeds == 1
    assert claims["lead poor 0.1 1.0x"].verdict is Verdict.NONE
    assert claims["lead poor 1 1.0x"].seeds == 2


def test_figure2_compares_after_as_many_steps_too():
    runs = rising(EXHIBITS["fig2"].cells(LONG))
    answer = show("fig2", runs, LONG)
    rows = {row[0]: row[1:] for row in answer.tables[0].rows}
    assert rows["SUSTrain"] == ["6.5 ± 1.1"] * 4  # the last half of 8 rounds: 5 to 8
    assert rows["USTrain, half the rounds"] == ["3.5 ± 0.5"] * 4  # of 4 rounds: 3 and 4
    told = answer.claims[0].ours
    assert told.startswith("equal epochs: +0.0")
    assert "equal optimiser steps: +3.0" in told
    begun = {c: RunRecord(r.path, r.experiment, {}, r.lines[:2], []) for c, r in runs.items()}
    assert "unfinished" in show("fig2", begun, LONG).tables[0].rows[3][1]


def test_figure6_compares_after_as_many_steps_per_device_too():
    runs = rising(EXHIBITS["fig6"].cells(LONG))
    rows = {row[0]: row[1] for row in show("fig6", runs, LONG).tables[0].rows}
    # 8 rounds with 20 devices are the steps of 4 with 10: rounds 4 to 8, and 1 to 4
    assert rows["10, equal local steps"] == "2.5 (round 4)"
    assert rows["20, equal local steps"] == "6.0 (round 8)"
    assert fig6_arm(0.1, 10, equal_steps=True).read_until(LONG) == 4


@pytest.mark.parametrize(("full", "told"), [(30, True), (40, False)])
def test_a_half_that_was_erased_is_told(full, told):
    """Told only if nothing arrived in a round, and both widths are the same since then."""
    words = "extremely poor channel, missing = zero"
    [cell] = arm_of("choices", words, 1.0, "slimfl", LONG).cells(LONG)
    run = record(cell, lambda w, n: 30 if w == "0.5x" else full if n >= 5 else 50)
    for lost, expected in (((5, 7), told), ((), False)):
        lines = [
            line.model_copy(update={"delivered": [10, 0 if line.round in lost else 3]})
            for line in run.lines
        ]
        notes = show("choices", {cell: RunRecord(run.path, run.experiment, {}, lines, [])}, LONG)
        said = " ".join(notes.sentences)
        assert ("the right half in round 5, and both widths" in said) is expected


def test_figure5_compares_settings_over_the_same_seeds():
    size = LONG.model_copy(update={"seeds_curves": 3})
    equal, unequal = (
        arm_of("fig5", words, 0.1, "slimfl", size).cells(size)
        for words in ("w = 0.5, 0.5", "w = 0.3, 0.7")
    )
    runs = {c: record(c, lambda w, n, s=c.experiment.seed: 60 + 10 * s)
            for c in [*equal, unequal[0]]}  # fmt: skip
    rows = show("fig5", runs, size).tables[0].rows
    assert [row[2] for row in rows[2:]] == ["60.0 ± 0.0 (1 of 3 seeds)"] * 2
    assert rows[0][1] == "not run"


def test_costs_until_convergence_rest_on_the_seeds_that_converged():
    size = LONG.model_copy(update={"convergence_accuracy": 0.2})
    whole = papers_runs(grid_cells(size))
    cut = dict(whole)
    short(cut, list(cut))  # a run that has converged needs no further rounds
    first, second = (show("table7", each, size) for each in (whole, cut))
    assert first.tables == second.tables
    assert [c.said for c in first.claims] == [c.said for c in second.claims]
    assert first.claims[0].contrast.mean == pytest.approx(2)  # two runs instead of one
    never = LONG.model_copy(update={"convergence_accuracy": 0.99})
    claims = show("table7", papers_runs(grid_cells(never)), never).claims
    assert {claim.verdict for claim in claims} == {Verdict.NONE}


def test_exhibits_of_nothing_say_so():
    for name, question in EXHIBITS.items():
        if question.cells(SMOKE):
            answer = show(name)
            assert {claim.verdict for claim in answer.claims} <= {Verdict.NONE}, name
            assert "not run" in answer.tables[0].as_markdown(), name


def test_a_final_accuracy_is_the_mean_over_the_last_rounds_of_every_seed():
    cells = grid_arm("poor", 0.1, "slimfl").cells(LONG)
    runs = {cells[0]: record(cells[0], lambda w, n: 49 + n % 2 * 2),
            cells[1]: record(cells[1], lambda w, n: 53 + n % 2 * 2)}  # fmt: skip
    found = final(runs, cells, "0.5x", 4)
    assert found.by_seed == {0: pytest.approx(50), 1: pytest.approx(54)}
    assert found.deviation == pytest.approx(math.sqrt(8))  # with n - 1
    assert found.over_rounds == pytest.approx(1)
    assert final(runs, cells, "0.5x", 1).mean == pytest.approx(51)  # the last wobbles down
    assert final({}, cells, "0.5x", 1) is None
    half = dict(rising(cells[:1]))
    half[cells[0]] = RunRecord(Path(), cells[0].experiment, {}, half[cells[0]].lines[:4], [])
    assert final(half, cells, "0.5x", 4).mean == pytest.approx(3.5)  # the window shrinks: 3 and 4


def test_fluctuation_ignores_a_trend_and_uses_the_second_half():
    [cell] = grid_arm("poor", 0.1, "slimfl").cells(LONG)[:1]
    jumpy = record(cell, lambda w, n: 10 * n + (3 if n % 2 else -3) if n > 4 else 90 * (n % 2))
    # rounds 5 to 8: steps 10 - 6, 10 + 6, 10 - 6
    expected = math.sqrt((4**2 + 16**2 + 4**2) / 3 / 2)
    assert fluctuations([jumpy], "1.0x") == {0: pytest.approx(expected)}


def test_a_table_keeps_its_cells_in_csv_and_markdown():
    table = show("table6").tables[0]
    assert list(csv.reader(io.StringIO(table.as_csv()))) == [table.headings, *table.rows]
    assert table.as_markdown().count("\n") == len(table.rows) + 2


def test_an_answer_is_written_and_compares_with_itself(tmp_path):
    questions = chosen(EXHIBITS, ["table4", "table5", "table6", "fig4"])
    made = make(questions, SMOKE, tmp_path / "cells", workers=1)
    document = write(made, tmp_path / "out", "python -m lab reproduce <table4>")
    assert document == json.loads((tmp_path / "out/results.json").read_text())
    assert differences(document, document) == []
    page = (tmp_path / "out/index.html").read_text()
    assert "reproduce &lt;table4&gt;" in page
    assert 'src="http' not in page
    for each in document["questions"]:
        assert f'id="{each["name"]}"' in page
    other = json.loads(json.dumps(document))
    other["questions"][0]["tables"][0]["rows"][0][1] = "9.99"
    (found,) = differences(document, other)
    assert "9.99" in found
    other["engine"] = "another"
    assert not same_engine(document, other)
    assert differences(document, other) == []  # a formula's number, not a claim
    other["questions"][1]["claims"][0]["ours"] = "1.50"
    assert "1.50" in differences(document, other)[0]
