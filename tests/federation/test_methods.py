import pytest

from slimfl.errors import RequestError
from slimfl.federation import SlimFL, Vanilla, expand, method

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


def test_an_unknown_method_is_told_the_known_ones():
    with pytest.raises(RequestError, match=r"vanilla-0\.25x, vanilla-0\.5x"):
        method("vanilla-0.75x", WIDTHS)
