"""The library as a notebook uses it: run, several seeds, load, tables, figures, sub-networks."""

import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import slimfl
from slimfl.errors import RequestError
from slimfl.round import RunFolder
from slimfl.round import run as run_simulation
from tests import asking

SMALL = {"dataset": "synthetic", "rounds": 3, "steps": 4, "devices": 4, "learning_rate": 5e-3}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return asking.run(out=tmp_path_factory.mktemp("runs") / "one", **SMALL)


def test_a_list_of_seeds_is_one_run_for_each():
    runs = asking.run(seed=[3, 5], **SMALL)
    assert [one.experiment.seed for one in runs] == [3, 5]
    for one in runs:
        alone = asking.run(seed=one.experiment.seed, **SMALL)
        np.testing.assert_array_equal(one.parameters, alone.parameters)
    mean = np.mean([one.final_accuracy["1.0x"] for one in runs])
    assert runs.final_accuracy["1.0x"] == pytest.approx(mean)


def test_every_seed_starts_from_the_network_that_was_given():
    network = slimfl.slimmable(nn.Sequential(nn.Flatten(), nn.Linear(144, 8), nn.Linear(8, 10)))
    before = [p.detach().clone() for p in network.parameters()]
    runs = asking.run(seed=[0, 1], network=network, **SMALL)
    assert all(torch.equal(p, q) for p, q in zip(network.parameters(), before, strict=True))
    alone = asking.run(seed=1, network=network, **SMALL)
    np.testing.assert_array_equal(runs[1].parameters, alone.parameters)


def test_several_seeds_in_folders(tmp_path):
    runs = asking.run(seed=[0, 1], out=tmp_path, **SMALL)
    loaded = slimfl.load(tmp_path)
    assert len(loaded) == 2
    for one, other in zip(runs, loaded, strict=True):
        np.testing.assert_array_equal(one.parameters, other.parameters)


def test_a_loaded_run_is_the_run(run):
    loaded = slimfl.load(run.folder)
    assert loaded.lines == run.lines
    assert loaded.experiment == run.experiment
    np.testing.assert_array_equal(loaded.parameters, run.parameters)
    images = torch.randn(3, 1, 12, 12)
    torch.testing.assert_close(loaded.network(images), run.network(images))
    with pytest.raises(RequestError, match="no folder"):
        slimfl.load(run.folder / "nowhere")


def test_a_run_with_an_own_network_is_loaded_with_one_of_its_shape(tmp_path):
    def network(hidden):
        return slimfl.slimmable(
            nn.Sequential(nn.Flatten(), nn.Linear(144, hidden), nn.ReLU(), nn.Linear(hidden, 10))
        )

    made = asking.run(network=network(8), out=tmp_path / "own", **SMALL)
    assert slimfl.load(tmp_path / "own").final_accuracy == made.final_accuracy
    with pytest.raises(RequestError, match=r"network=.* of slimfl\.resume or slimfl\.load"):
        slimfl.load(tmp_path / "own").network  # noqa: B018
    with pytest.raises(RequestError, match="another network"):
        slimfl.load(tmp_path / "own", network=network(9)).network  # noqa: B018
    again = slimfl.load(tmp_path / "own", network=network(8))
    np.testing.assert_array_equal(again.parameters, made.parameters)


def test_a_run_without_a_checkpoint_has_rounds_and_no_network(tmp_path):
    sim = slimfl.round.Simulation(asking.run(**SMALL).experiment)
    RunFolder.create(tmp_path / "begun", sim.experiment, sim.setting.provenance())
    loaded = slimfl.load(tmp_path / "begun")
    assert loaded.lines == []
    assert "0 of 3 rounds: not tested" in repr(loaded)
    with pytest.raises(RequestError, match="no checkpoint"):
        loaded.network  # noqa: B018


@pytest.mark.parametrize("width", [0.5, 1, "1.0x"])
def test_a_width_on_its_own_is_a_plain_module_that_scores_the_same(run, width):
    alone = run.model(width)
    sim = slimfl.round.Simulation(run.experiment)
    mean, deviation = sim.setting.dataset.normalisation("standard")
    images = (
        torch.from_numpy(sim.setting.dataset.test.images) / 255 - torch.from_numpy(mean)
    ) / torch.from_numpy(deviation)
    answers = alone(images.permute(0, 3, 1, 2)).argmax(1)
    right = (answers == torch.from_numpy(sim.setting.dataset.test.labels)).double().mean()
    name = width if isinstance(width, str) else f"{float(width)}x"
    assert float(right) == pytest.approx(run.final_accuracy[name], abs=1e-9)
    assert not any(type(m).__module__.startswith("slimfl") for m in alone.modules())
    assert sum(p.numel() for p in alone.parameters()) == (1530 if width == 0.5 else 4586)


def test_a_width_that_was_not_trained_is_refused(run):
    with pytest.raises(RequestError, match=r"0\.5x, 1\.0x, not 0\.25"):
        run.model(0.25)


def test_a_frame_says_what_the_metrics_say(run):
    table = run.rounds
    assert table["round"].tolist() == [1, 2, 3]
    for line, (_, row) in zip(run.lines, table.iterrows(), strict=True):
        assert row["accuracy_0.5x"] == line.accuracy["0.5x"]
        assert row["delivered_2"] == line.delivered[1]
        assert row["bits_sent_1"] == line.bits_sent[0]
        assert row["devices"] == len(line.devices)
        assert row["energy_j"] == line.energy_j
        assert row["seconds_training"] == line.seconds.training


def test_a_plot_is_a_figure_with_the_accuracies_that_shows_itself(run):
    figure = run.plot()
    lines = figure.axes[0].get_lines()
    assert len(lines) == 2
    drawn = {tuple(np.round(line.get_ydata(), 9)) for line in lines}
    assert drawn == {
        tuple(np.round([100 * line.accuracy[w] for line in run.lines], 9)) for w in ("0.5x", "1.0x")
    }
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_run_is_printed_on_one_line(run):
    accuracy = f"1.0x {run.final_accuracy['1.0x']:.1%}"
    assert "\n" not in repr(run)
    assert accuracy in repr(run)
    assert "poor channel, 3 rounds" in repr(run)
    assert f"<td>{run.final_accuracy['1.0x']:.1%}</td>" in run._repr_html_()


def test_names_from_a_strangers_folder_cannot_write_html(run):
    evil = run.experiment.model_copy(update={"method": "<script>alert(1)</script>"})
    shown = slimfl.Run(evil, run.lines, None, {}, run.trained)._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_progress_in_a_log_is_a_line_for_every_tenth(capsys):
    asking.run(progress=True, **{**SMALL, "rounds": 20})
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert re.fullmatch(r"slimfl, seed 0: round 20 of 20, 0\.5x .*%, 1\.0x .*%", lines[-1])


def test_progress_in_a_terminal_and_in_a_notebook(monkeypatch, capsys):
    import types

    from slimfl.runs import progress

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False, raising=False)
    assert type(progress.display()).__name__ == "_Log", "a bar would draw over what is piped on"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert type(progress.display()).__name__ == "_Terminal"

    shown = []

    class Handle:
        def update(self, html):
            shown.append(html)

    shell = types.SimpleNamespace(kernel=object())
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell
    screen = types.ModuleType("IPython.display")
    screen.HTML = str
    screen.display = lambda html, display_id: Handle()
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", screen)
    asking.run(progress=True, **SMALL)
    assert re.search(r'value="(\d+)" max="\1"', shown[-1])
    assert "round 3 of 3" in shown[-1]


def naive_stop(accuracies, patience, better):
    """The first round after which the best is `patience` rounds old, in plain words."""
    for last in range(1, len(accuracies) + 1):
        best_round, best = 1, accuracies[0]
        for number in range(2, last + 1):
            if accuracies[number - 1] > best + better:
                best_round, best = number, accuracies[number - 1]
        if last - best_round >= patience:
            return last
    return len(accuracies)


@pytest.mark.parametrize(("patience", "better"), [(1, 0.0), (2, 0.0), (2, 0.2), (3, 0.02)])
def test_early_stopping_ends_where_the_best_is_too_old(patience, better):
    long = {**SMALL, "rounds": 14, "learning_rate": 2e-2}
    whole = asking.run(**long)
    accuracies = [line.accuracy["0.5x"] for line in whole.lines]
    options = {"patience": patience, "width": 0.5, "min_improvement": better}
    stopped = asking.run(callbacks=[slimfl.round.EarlyStopping(**options)], **long)
    assert len(stopped.lines) == naive_stop(accuracies, patience, better)
    options["width"] = "0.5x"
    named = asking.run(callbacks=[{"name": "early-stopping", "options": options}], **long)
    assert len(named.lines) == len(stopped.lines)
    np.testing.assert_array_equal(named.parameters, stopped.parameters)


def test_early_stopping_waits_for_tests_of_the_width():
    """Tests after rounds 6 and 12: the second is no better by 0.9, and ends the run."""
    long = {**SMALL, "rounds": 14, "federation__evaluate_every": 6}
    patient = slimfl.round.EarlyStopping(patience=2, width=1, min_improvement=0.9)
    stopped = asking.run(callbacks=[patient], **long)
    assert [line.round for line in stopped.lines if line.accuracy] == [6, 12]
    assert len(stopped.lines) == 12


def test_a_resumed_run_stops_early_in_the_same_round(tmp_path):
    long = {**SMALL, "rounds": 14, "learning_rate": 2e-2}
    watched = {"name": "early-stopping", "options": {"patience": 4, "min_improvement": 0.3}}
    whole = asking.run(callbacks=[watched], **long)
    assert 3 < len(whole.lines) < 14
    cut = len(whole.lines) - 1
    sim = slimfl.round.Simulation(whole.experiment)
    folder = RunFolder.create(tmp_path / "cut", sim.experiment, sim.setting.provenance())
    run_simulation(sim, folder, until=cut)
    assert len(slimfl.resume(tmp_path / "cut").lines) == len(whole.lines)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"patience": 0}, "patience must be"),
        ({"min_improvement": -1}, "min_improvement must be"),
        ({"width": "0.3x"}, r"watches the width 0\.3x"),
    ],
)
def test_early_stopping_that_could_never_work_is_refused(options, words):
    with pytest.raises(RequestError, match=words):
        asking.run(callbacks=[{"name": "early-stopping", "options": options}], **SMALL)


def test_importing_the_library_waits_for_nothing_heavy():
    heavy = "'torch', 'pandas', 'matplotlib'"
    code = f"import slimfl, sys; print([m for m in ({heavy}) if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n"


class Namesake:
    """Has a name and nothing else that a method has."""

    name = "namesake"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"method": 3}, "^method: must be a name"),
        ({"method": Namesake()}, "without evaluates, assign, start, merge$"),
        ({"channel": 3.5}, r"^radio\.model: must be a name"),
        ({"channel": Namesake()}, "the channel .* without needs_payload, start"),
        ({"network": Namesake()}, "the network .* give a torch network"),
        ({"callbacks": [3]}, "callbacks= takes .*, and one is of type int"),
        ({"callbacks": [slimfl.round.EarlyStopping]}, "one is of type type"),
        ({"callbacks": "early-stopping"}, "takes a list"),
        ({"callbacks": slimfl.round.EarlyStopping()}, "takes a list"),
        ({"dataset": [1]}, r"^data\.dataset: must be a name"),
        ({"dataset": np.zeros(3)}, r"Dataset\.from_"),
    ],
)
def test_an_object_of_the_wrong_kind_is_one_sentence(given, words):
    with pytest.raises(RequestError, match=words):
        asking.run(**SMALL | given)


def test_a_class_in_place_of_its_object_is_refused():
    from slimfl.methods.slimfl import SlimFL

    with pytest.raises(RequestError, match="the class SlimFL; call it to make an object"):
        asking.run(**SMALL, method=SlimFL)


@pytest.mark.parametrize(
    "given", [{"method": 3}, {"channel": "poor"}, {"network": 3}, {"callbacks": ["early-stopping"]}]
)
def test_resume_refuses_objects_of_the_wrong_kind(given, run):
    with pytest.raises(RequestError, match=next(iter(given))):
        slimfl.resume(run.folder, **given)


def test_an_accuracy_is_found_by_the_number_of_its_width(run):
    for found in (run.final_accuracy, slimfl.runs.run.Runs([run]).final_accuracy):
        assert found[0.5] == found["0.5x"] == found.get(0.5)
        assert found[1] == found[1.0] == found["1.0x"]
        assert 0.5 in found
        assert 0.3 not in found
        for width in (0.3, "0.3x"):
            with pytest.raises(
                KeyError, match=r"there is no width '0\.3x'; choose from 0\.5x, 1\.0x"
            ):
                found[width]


class Misspelt(slimfl.Callback):
    def on_rounds(self, record, model):
        raise AssertionError


def test_a_callback_with_a_method_that_is_never_called_is_refused(tmp_path):
    message = "has a method on_rounds, which is never called; call it on_round"
    with pytest.raises(RequestError, match=message):
        asking.run(callbacks=[Misspelt()], out=tmp_path / "one", **SMALL)
    with pytest.raises(RequestError, match=message):
        asking.compare(seed=[0, 1], callbacks=[Misspelt()], **SMALL)
    with pytest.raises(RequestError, match=message):
        asking.run(callbacks=[f"{__name__}:Misspelt"], trust=[__name__], **SMALL)
    assert not list(tmp_path.iterdir())


def test_an_experiment_or_what_a_file_contains_may_be_given_in_place_of_a_file(run):
    again = asking.run(run.experiment)
    assert again.experiment == run.experiment
    np.testing.assert_array_equal(again.parameters, run.parameters)
    given = {"radio": {"channel": "good"}, "training": {"epochs": 3}}
    changed = asking.run(given, noise_dbm=-41, **SMALL).experiment
    assert (changed.radio.noise_dbm, changed.training.epochs) == (-41, None)
    assert given == {"radio": {"channel": "good"}, "training": {"epochs": 3}}
    assert len(asking.compare(run.experiment, seed=[0, 1], workers=1)) == 2
    with pytest.raises(RequestError, match="an Experiment, and this is of type int"):
        asking.run(3)
