"""Static figures: what they draw, and the files they write."""

import numpy as np
import pytest

from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio import build_coding as coding
from slimfl.radio import optimal_split, section_probabilities
from slimfl.report.figures.drawing import save
from slimfl.report.figures.link import (
    bound_figure,
    preference_figure,
    probability_figure,
    split_figure,
)
from slimfl.report.figures.runs import accuracy_figure, partition_figure


def test_partition_bars_are_the_counts():
    (axes,) = partition_figure([[30, 10], [0, 60], [5, 5]], "title").axes
    assert [bar.get_width() for bar in axes.patches] == [30, 0, 5, 10, 60, 5]
    assert axes.get_title(loc="left") == "title"
    with pytest.raises(RequestError, match="not distributed its data"):
        partition_figure([], "")


def test_accuracy_lines_and_bands(paper_runs):
    (axes,) = accuracy_figure(paper_runs).axes
    labels = [line.get_label() for line in axes.lines]
    assert labels == [
        "SlimFL, 0.5x", "SlimFL, 1.0x", "Vanilla FL-0.5x, 0.5x", "Vanilla FL-1.0x, 1.0x"
    ]  # fmt: skip
    assert list(axes.lines[0].get_ydata()) == pytest.approx([55, 65])
    assert axes.lines[0].get_linestyle() != axes.lines[1].get_linestyle()
    assert axes.lines[0].get_color() == axes.lines[1].get_color()
    assert len(axes.collections) == 4


def test_a_scene_is_a_panel(make_run):
    figure = accuracy_figure(
        [make_run(), make_run(name="b", experiment={"radio__channel": "good"})]
    )
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Poor channel", "Good channel"]


@pytest.mark.parametrize("rates", [(1.5, 1.5), (1.0, 1.0, 1.0), (2.0, 0.5)])
def test_the_split_curve_is_lowest_at_the_optimum(rates):
    (axes,) = split_figure(RadioSection(channel="good", split="optimal"), rates).axes
    curve, closed, _numeric, _configured = axes.lines
    lowest = curve.get_xdata()[curve.get_ydata().argmin()]
    assert closed.get_xdata()[0] == pytest.approx(optimal_split(rates)[0])
    assert lowest == pytest.approx(closed.get_xdata()[0], abs=0.03)


def test_probabilities_at_the_poor_channel_are_table_6():
    (axes,) = probability_figure(RadioSection(noise_dbm=-45), (1.5, 1.5)).axes
    at_poor = {
        line.get_label(): float(line.get_ydata()[150])
        for line in axes.lines
        if not line.get_label().startswith("_")
    }
    assert axes.lines[0].get_xdata()[150] == pytest.approx(-40)
    assert list(at_poor.values()) == pytest.approx([0.810, 0.632, 0.912, 0.704], abs=1e-3)
    marks = [text.get_text() for text in axes.texts]
    assert marks == ["good (-51)", "poor (-40)", "now (-45)"]


LINKS = {
    "line of sight": {"fading": "rician", "rician_k_db": 9.0},
    "residual": {"residual_interference": 0.05},
    "attempts": {"max_attempts": 2},
    "in turn": {"multiplexing": "orthogonal-energy"},
    "shadow": {"shadowing_db": 6.0},
}


@pytest.mark.parametrize("keys", LINKS.values(), ids=LINKS)
def test_the_split_curve_is_that_of_the_link(keys):
    section = RadioSection(split="optimal-numeric", **keys)
    (axes,) = split_figure(section, (1.5, 1.5)).axes
    curve = axes.lines[0]
    for i in (10, 25, 40):
        share = float(curve.get_xdata()[i * len(curve.get_xdata()) // 50])
        height = curve.get_ydata()[i * len(curve.get_xdata()) // 50]
        try:
            sent = coding(section, (1.5, 1.5), (share, 1 - share))
        except RequestError:
            assert np.isnan(height)
            continue
        assert height == pytest.approx((1 / section_probabilities(section, sent)).sum())
    marks = {line.get_label().split(":")[0]: line for line in axes.lines[1:]}
    assert float(np.nanmin(curve.get_ydata())) >= marks["numeric optimum"].get_ydata()[0] - 1e-6
    assert ("closed form" in marks) == ("multiplexing" not in keys)


def test_the_noise_that_is_drawn_suits_the_path_loss():
    section = RadioSection(path_loss="free-space", noise_density_dbm_hz=-174, noise_figure_db=9)
    (axes,) = probability_figure(section, (1.5, 1.5)).axes
    low, high = axes.get_xlim()
    assert low < section.noise < high
    whole = axes.lines[3].get_ydata()
    assert whole[0] > 0.99
    assert whole[-1] < 0.01
    assert [text.get_text() for text in axes.texts] == [f"now ({section.noise:.4g})"]


def test_the_map_marks_the_present_place_and_names_what_is_in_it():
    (axes,) = preference_figure(RadioSection(noise_dbm=-45.0), (0.5, 1.0), 10).axes
    _, labels = axes.get_legend_handles_labels()
    methods = ["SlimFL", "Vanilla FL-0.5x", "Vanilla FL-1.0x"]
    assert labels == [*methods, "nothing arrives", "tie: D within 1%", "now"]
    (star,) = (line for line in axes.lines if line.get_label() == "now")
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (-45.0, 1.5)


def test_rates_and_widths_of_the_caller_count():
    (axes,) = probability_figure(RadioSection(), (1.0, 0.5, 0.5), (0.25, 0.5, 1.0)).axes
    labels = [line.get_label() for line in axes.lines if not line.get_label().startswith("_")]
    assert labels[3:] == ["Vanilla FL-0.25x", "Vanilla FL-0.5x", "Vanilla FL-1.0x"]
    half, full = (axes.lines[i].get_ydata()[150] for i in (4, 5))
    assert 0 < full < half < 1


def test_bounds_fall_on_logarithmic_axes():
    (axes,) = bound_figure([1, 10, 100], {"paper": [9.0, 3.0, 1.0], "sharp": [0.9, 0.3, 0.1]}).axes
    assert [line.get_label() for line in axes.lines] == ["paper", "sharp"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_figures_are_saved_by_suffix_and_repeatable(tmp_path, suffix):
    first, second = (
        save(partition_figure([[1, 2], [3, 4]], "t"), tmp_path / name / f"f.{suffix}")
        for name in "ab"
    )
    assert first.read_bytes() == second.read_bytes()
    assert [path.name for path in first.parent.iterdir()] == [first.name]


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(RequestError, match="end the name in"):
        save(partition_figure([[1]], ""), tmp_path / "f.bmp")


def test_a_name_is_no_formula(tmp_path):
    figure = partition_figure([[1, 2]], r"$\frac$ and $5 or $6")
    save(figure, tmp_path / "it.png")
    assert not figure.axes[0].title.get_parse_math()
