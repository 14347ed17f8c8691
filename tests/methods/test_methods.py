"""SlimFL and Vanilla FL: what they assign, how they merge, and their names."""

import pytest

from slimfl.devices import Device
from slimfl.errors import RequestError
from slimfl.methods import SlimFL, Vanilla, Work, expand, method, vanilla_all_name

WIDTHS = (0.25, 0.5, 1.0)


def device(max_width=2):
    return Device(id=0, samples=10, max_width=max_width, power_dbm=23.0, distance_m=100.0)


def test_slimfl_trains_all_widths_and_sends_each_segment_as_a_message():
    slimfl = method("slimfl", WIDTHS)
    assert slimfl == SlimFL(WIDTHS)
    assert slimfl.evaluates() == (0, 1, 2)
    assert slimfl.assign(device(), 1, None) == Work((0, 1, 2), ((0,), (1,), (2,)))


def test_a_slimfl_device_of_half_width_trains_and_sends_what_it_can():
    assert method("slimfl", WIDTHS).assign(device(1), 1, None) == Work((0, 1), ((0,), (1,)))


def test_vanilla_trains_one_width_and_sends_its_segments_as_one_message():
    vanilla = method("vanilla-0.5x", WIDTHS)
    assert vanilla == Vanilla(1, "vanilla-0.5x")
    assert vanilla.evaluates() == (1,)
    assert vanilla.assign(device(), 1, None) == Work((1,), ((0, 1),))


def test_a_device_that_cannot_train_the_width_of_vanilla_sits_out():
    assert method("vanilla-1.0x", WIDTHS).assign(device(1), 1, None) is None


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
    with pytest.raises(RequestError, match=r"us-net, vanilla-all,"):
        method("nobody", WIDTHS)


def test_an_unknown_method_is_told_the_known_ones():
    with pytest.raises(RequestError, match=r"vanilla-0\.25x, vanilla-0\.5x"):
        method("vanilla-0.75x", WIDTHS)
