import pytest

from slimfl.errors import RequestError
from slimfl.federation import SlimFL, Vanilla, expand, method, vanilla_all_name

WIDTHS = (0.25, 0.5, 1.0)


def test_slimfl_trains_all_widths_and_sends_each_segment_as_a_message():
    slimfl = method("slimfl", WIDTHS)
    assert slimfl == SlimFL(3)
    assert slimfl.trains(0).widths == (0, 1, 2)
    assert slimfl.sends(0) == ((0,), (1,), (2,))


def test_vanilla_trains_one_width_and_sends_its_segments_as_one_message():
    vanilla = method("vanilla-0.5x", WIDTHS)
    assert vanilla == Vanilla(1, "vanilla-0.5x")
    assert vanilla.trains(0).one_width
    assert vanilla.widths == (1,)
    assert vanilla.sends(0) == ((0, 1),)


def test_vanilla_15_is_every_width_by_itself():
    assert expand(["slimfl", "vanilla-1.5x"], (0.5, 1.0)) == [
        "slimfl",
        "vanilla-0.5x",
        "vanilla-1.0x",
    ]
    assert expand(["vanilla-1.0x", "vanilla-1.5x"], (0.5, 1.0)) == ["vanilla-1.0x", "vanilla-0.5x"]


@pytest.mark.parametrize("widths", [(0.5, 1.0), (0.25, 0.5, 1.0), (0.2, 0.3, 1.0), (1.0,)])
def test_vanilla_all_is_every_width_of_any_network(widths):
    parts = [f"vanilla-{width}x" for width in widths]
    assert expand(["slimfl", "vanilla-all"], widths) == ["slimfl", *parts]


def test_the_papers_name_is_refused_for_widths_that_sum_to_something_else():
    for widths in ((0.25, 1.0), (0.25, 0.5, 1.0), (1.0,)):
        with pytest.raises(RequestError, match="use vanilla-all"):
            expand(["vanilla-1.5x"], widths)
    assert len(expand(["vanilla-1.5x"], (0.2, 0.3, 1.0))) == 3


def test_all_widths_together_bear_the_papers_name_for_the_papers_widths_only():
    assert vanilla_all_name((0.5, 1.0)) == "vanilla-1.5x"
    assert vanilla_all_name((0.25, 0.5, 1.0)) == "vanilla-all"
    assert vanilla_all_name((0.2, 0.3, 1.0)) == "vanilla-all"
    with pytest.raises(RequestError, match=r"vanilla-1\.0x, vanilla-all$"):
        method("fjord", WIDTHS)


def test_an_unknown_method_is_told_the_known_ones():
    with pytest.raises(RequestError, match=r"vanilla-0\.25x, vanilla-0\.5x"):
        method("vanilla-0.75x", WIDTHS)
