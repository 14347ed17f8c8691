"""The sentences and tables of a report."""

import itertools
from io import StringIO

import pytest
from rich.console import Console

from slimfl.report.pages.conclusions import caveats, conclusions_by_scene
from slimfl.report.tables import console_tables, number
from slimfl.results.rules import expected_of
from slimfl.results.summary import summarise


def conclusions(runs):
    by_scene = conclusions_by_scene(summarise(runs))
    return list(itertools.chain.from_iterable(by_scene.values()))


def printed(runs, differences=False) -> str:
    """The tables of runs on the terminal."""
    console = Console(width=100, record=True, file=StringIO())
    console.print(*console_tables(runs, differences))
    return console.export_text()


def test_a_lead_has_an_interval_over_seeds(make_run):
    """Differences of 9, 10, 11, 10, 10 points: deviation 0.707, Student's factor 2.776 for four."""
    runs = []
    for seed, lead in enumerate((0.09, 0.10, 0.11, 0.10, 0.10)):
        runs += [
            make_run("slimfl", seed, {"0.5x": [0.70 + lead], "1.0x": [0.9]}),
            make_run("vanilla-0.5x", seed, {"0.5x": [0.70]}),
            make_run("vanilla-1.0x", seed, {"1.0x": [0.88 + 0.01 * seed]}),
        ]
    half, full, costs = conclusions(runs)
    assert half == (
        "At width 0.5x over the poor channel, at equal rounds, airtime, transmit energy and "
        "computing, SlimFL (80.0 %) leads; over Vanilla FL-0.5x (70.0 %): +10.0 [+9.1, +10.9] "
        "points, 5 seeds."
    )
    assert "SlimFL (90.0 %) and Vanilla FL-1.0x (90.0 %) are not told apart" in full
    assert "[-2.0, +2.0] points, 5 seeds" in full
    assert "one run of SlimFL and 0.500 J with one run of Vanilla FL per width (2.00 times" in costs
    assert not any("one seed" in note for note in caveats(summarise(runs)))


def test_a_comparison_names_the_budgets_in_which_methods_differ(make_run):
    runs = [
        make_run("slimfl", curves={"1.0x": [0.9]}),
        make_run("vanilla-1.0x", curves={"1.0x": [0.8]}, airtime_s=9.0, energy_j=9.0),
    ]
    [said] = conclusions(runs)
    assert "at equal rounds and computing, but not airtime and transmit energy, SlimFL" in said
    table = printed(runs)
    assert "equal for all single runs: rounds, computing" in table
    assert "not equal for all single runs: airtime, transmit energy" in table


def test_one_seed_tells_nothing_apart_and_few_are_preliminary(make_run):
    runs = [
        make_run("slimfl", curves={"1.0x": [0.90, 0.90]}),
        make_run("vanilla-1.0x", curves={"1.0x": [0.10, 0.10]}, experiment={"data__alpha": 1.0}),
        make_run("sheterofl", curves={"1.0x": [0.80, 0.80]}),
    ]
    [said] = conclusions(runs)
    assert said.endswith("SlimFL (90.0 %) and SHeteroFL (80.0 %): one seed tells nothing apart; "
                         "Vanilla FL-1.0x (10.0 %) has not learned yet.")  # fmt: skip
    assert any("one seed" in note for note in caveats(summarise(runs)))
    runs += [
        make_run("slimfl", 1, {"1.0x": [0.905, 0.905]}),
        make_run("sheterofl", 1, {"1.0x": [0.806, 0.806]}),
    ]
    assert "+9.9 [+9.3, +10.6] points, 2 seeds, preliminary" in conclusions(runs)[0]


def test_vanilla_is_stopped_at_the_transmit_energy_of_slimfl(make_run):
    """SlimFL spends 0.4 J in 4 rounds; both others together 0.2 J in a round: 2 of 4 rounds."""
    curves = [0.52, 0.60, 0.70, 0.80]
    runs = [
        make_run("slimfl", curves={"0.5x": curves, "1.0x": curves}, energy_j=0.1),
        make_run("vanilla-0.5x", curves={"0.5x": curves}, energy_j=0.05),
        make_run("vanilla-1.0x", curves={"1.0x": curves}, energy_j=0.1, cut_off_energy_j=0.05),
    ]
    *_, said = conclusions(runs)
    assert said == (
        "At SlimFL's transmit energy of 0.4 J, Vanilla FL-1.5x has done 2 of 4 rounds and reached "
        "0.5x: 56.0 %, SlimFL +9.5 points (one seed); 1.0x: 56.0 %, SlimFL +9.5 points (one seed)."
    )
    assert " ".join(said.split()) in " ".join(printed(runs).split())
    # with a first round that is too expensive there is nothing to compare
    dear = [runs[0], runs[1], make_run("vanilla-1.0x", name="dear", energy_j=9.0)]
    assert not any(said.startswith("At SlimFL's") for said in conclusions(dear))


def test_later_rounds_do_not_count_for_slimfl_alone(make_run):
    """SlimFL ends with 10 of 20 tests; Vanilla FL, stopped after 10 rounds, with its last 5."""
    curves = [0.50 + 0.01 * i for i in range(20)]
    runs = [
        make_run("slimfl", curves={"0.5x": curves, "1.0x": curves}, energy_j=0.1),
        make_run("vanilla-0.5x", curves={"0.5x": curves}, energy_j=0.1),
        make_run("vanilla-1.0x", curves={"1.0x": curves}, energy_j=0.1),
    ]
    [found] = summarise(runs).budgets
    assert (found.rounds, found.of_rounds) == (10, 20)
    assert found.reached["1.0x"] == pytest.approx(sum(curves[5:10]) / 5)
    assert found.lead["1.0x"].mean == pytest.approx(100 * (sum(curves[10:]) / 10 - 0.57))


def test_the_mean_of_the_last_models_is_a_second_score(make_run):
    averaged = {"0.5x": 0.55, "1.0x": 0.85}
    keys = {"federation__average_last": 2}
    runs = [
        make_run("slimfl", seed, experiment=keys, averaged_accuracy=averaged) for seed in (0, 1)
    ]
    [found] = summarise(runs).averaged
    assert (found.models, found.accuracy) == (2, averaged)
    assert found.words in conclusions(runs)
    assert " ".join(found.words.split()) in " ".join(printed(runs).split())
    rows = summarise(runs).groups
    assert rows[0].accuracy_mean("1.0x") == pytest.approx(0.75), "never instead of the last"
    assert not summarise([make_run("vanilla-1.0x", curves={"1.0x": [0.5]})]).averaged


def test_what_is_not_what_its_name_says_is_told(make_run):
    """Segments that always arrive together are one message; one that never does is none."""
    together = make_run("slimfl", decoded=[2, 0], delivered=[1, 1])
    never = make_run("slimfl", 1, decoded=[1, 1], delivered=[2, 0])
    fine = make_run("slimfl", 2)
    one_message = make_run("sheterofl", decoded=[2, 0], delivered=[1, 1])

    def notes(run):
        return " ".join(caveats(summarise([run])))

    assert "Segments 1 and 2 of SlimFL (poor channel) always arrived together" in notes(together)
    assert "Segment 2 of SlimFL (poor channel) never arrived" in notes(never)
    for run in (fine, one_message):
        assert "arrived" not in notes(run)


def test_costs_are_compared_between_runs_with_the_same_settings(make_run):
    """Eight bits per parameter cost a quarter; only 32 bits were run with Vanilla FL."""
    runs = [
        make_run(name="eight", experiment={"radio__bits_per_parameter": 8.0}, energy_j=0.0625),
        make_run(),
        make_run("vanilla-0.5x", curves={"0.5x": [0.5, 0.6]}),
        make_run("vanilla-1.0x", curves={"1.0x": [0.7, 0.8]}),
    ]
    costs = [said for said in conclusions(runs) if "one run of" in said]
    assert len(costs) == 1
    assert "0.500 J of transmit energy with one run of SlimFL (radio.bits_per_pa" in costs[0]
    assert "(2.00 times as much)" in costs[0]


def test_networks_that_guess_are_not_ranked(make_run):
    """Two classes and 10,000 test samples: a coin is right in 50 ± 0.5 % of them."""

    numbers = itertools.count()

    def said(slim, vanilla):
        runs = [
            make_run("slimfl", curves={"1.0x": [slim] * 2}, name=f"s{next(numbers)}"),
            make_run("vanilla-1.0x", curves={"1.0x": [vanilla] * 2}, name=f"v{next(numbers)}"),
        ]
        return conclusions(runs)[0]

    for guessed in (0.0, 0.4, 0.5, 0.515):
        assert "have not learned yet" in said(0.501, guessed)
        assert "one seed" not in said(0.501, guessed)
    assert said(0.5, 0.9).endswith(
        "Vanilla FL-1.0x (90.0 %) is the only one that has learned; SlimFL (50.0 %) has not "
        "learned yet."
    )
    assert "Vanilla FL-1.0x (90.0 %) and SlimFL (51.6 %): one seed" in said(0.516, 0.9)


def test_tables_say_which_networks_only_guess(make_run):
    learned = make_run("slimfl", curves={"0.5x": [0.8], "1.0x": [0.9]})
    guessing = make_run("vanilla-0.5x", curves={"0.5x": [0.5]})
    for differences in (False, True):
        assert "learned" not in printed([learned], differences)
        both = printed([learned, guessing], differences)
        assert "not learned yet: Vanilla FL-0.5x at 0.5x (not above 51.5 %" in both
        assert "no network has learned yet (not above 51.5 %" in printed([guessing], differences)


def test_the_limit_of_guessing_is_three_binomial_errors():
    """Against the tail of the binomial itself: a guesser passes about once in a thousand times."""
    from scipy.stats import binom

    from slimfl.results.rules import learned_above

    for classes, samples in ((2, 500), (10, 1_000), (10, 10_000), (62, 10_000)):
        above = binom.sf(learned_above(classes, samples) * samples, samples, 1 / classes)
        assert 0.0005 < above < 0.003


def test_a_shorter_test_set_needs_more(make_run):
    whole, short = (
        summarise([make_run(name=str(n), experiment={"data__test_samples": n})]).groups[0]
        for n in (10_000, 100)
    )
    assert whole.learned_above == pytest.approx(0.515)
    assert short.learned_above == pytest.approx(0.65)


def test_an_unfinished_run_and_refused_updates_are_told(make_run):
    run = make_run(experiment={"rounds": 9}, refused=[1], delivered=[1, 1])
    notes = " ".join(caveats(summarise([run])))
    assert "2 of 9 rounds" in notes
    assert "refused 2 updates" in notes


def test_the_comparison_has_differences_in_points(paper_runs):
    text = printed(paper_runs, differences=True)
    assert "Vanilla FL-0.5x" in text, "names are not folded"
    assert text.count("(-10.0 ± 0.0)") == 4, "the same in both seeds"


def test_expected_shares_are_equation_5(make_run):
    # the paper's table VI, poor channel
    assert expected(make_run()) == pytest.approx([0.810, 0.632], abs=1e-3)
    half = make_run("vanilla-0.5x", curves={"0.5x": [0.5]}, experiment={"federation__dropout": 0.5})
    assert expected(half) == pytest.approx([0.912 / 2, 0], abs=1e-3)
    mine = half.experiment.model_copy(update={"method": "mine"})
    assert expected_of(mine, half.provenance) is None


def expected(run):
    return expected_of(run.experiment, run.provenance)


def test_what_the_run_recorded_as_expected_is_believed_if_it_can_be_shares(make_run):
    run = make_run()
    for recorded, found in (
        ([0.25, 0.125], [0.25, 0.125]),
        ([0.25], None),
        ([0.25, 2.0], None),
        ([0.25, float("nan")], None),
        (["0.25", 0.5], None),
    ):
        provenance = {**run.provenance, "expected_shares": recorded}
        assert expected_of(run.experiment, provenance) == found


def test_a_channel_that_a_folder_names_is_not_imported_to_be_asked(make_run):
    run = make_run()
    radio = run.experiment.radio.model_copy(update={"model": "no_such_module_here:Channel"})
    named = run.experiment.model_copy(update={"radio": radio})
    assert expected_of(named, run.provenance) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00"),
        (0.00001234, "0.0000123"),
        (12.345, "12.3"),
        (999.6, "1,000"),
        (123456, "123,456"),
    ],
)
def test_numbers_have_no_powers_of_ten(value, text):
    assert number(value) == text
