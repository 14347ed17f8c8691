"""The `time` and `energy` sections: when a round ends, and what work costs."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from slimfl.experiment.sections.section import Count, Section, at_least

#: Virtual seconds; the limits are beyond those of any real device.
VirtualSeconds = Annotated[float, Field(gt=0, le=1e9), at_least(1e-9)]

#: The presets of computing energy; `slimfl.devices.computing_energy` has their numbers.
EnergyPreset = Literal["none", "horowitz-45nm", "kappa-1e-28", "kappa-1e-27", "raspberry-pi-4"]


class TimeSection(Section):
    """The virtual clock: how long a round lasts, and which devices finish in time."""

    mode: Literal["wait-for-all", "deadline", "first", "over-commit", "asynchronous"] = (
        "wait-for-all"
    )
    """When the server merges: after all devices; at `deadline_s`; after the `first` updates; after
    as many as `federation.participation` says, of `over_commit` times as many devices asked; or,
    asynchronously, whenever a segment's `buffer` is full."""
    deadline_s: VirtualSeconds | None = None
    """When the server stops listening; required by `deadline`, optional with `first` and
    `over-commit`."""
    first: Count | None = None
    """Number of updates that a round waits for with `mode = "first"`."""
    over_commit: Annotated[float, Field(ge=1, le=1000)] = 1.3
    """Number of devices asked per device needed, with `mode = "over-commit"`."""
    concurrency: Count | None = None
    """Number of devices that work at the same time in asynchronous mode; absent: the share
    `federation.participation` of all devices."""
    buffer: Count | None = None
    """Number of uploads after which a segment is merged in asynchronous mode; absent: the value
    of `concurrency`."""
    buffer_counts: Literal["uploads", "arrivals"] = "uploads"
    """What takes a place in a segment's buffer: every upload that should contain it, or only those
    that arrive."""
    staleness_exponent: Annotated[float, Field(ge=0, le=10)] = 0.5
    """A stale change is weighted by 1 / (1 + staleness) to this power; with 0, all are equal."""
    download_bits_per_s: Annotated[float, Field(gt=0, le=1e15), at_least(1e-3)] | None = None
    """Rate of the downlink; absent: the download takes no time, as in the paper."""

    @model_validator(mode="after")
    def _keys_of_the_mode(self) -> Self:
        allowed = {
            "deadline_s": ("deadline", "first", "over-commit"),
            "first": ("first",),
            "over_commit": ("over-commit",),
            "concurrency": ("asynchronous",),
            "buffer": ("asynchronous",),
            "buffer_counts": ("asynchronous",),
            "staleness_exponent": ("asynchronous",),
        }
        for key, modes in allowed.items():
            default = type(self).model_fields[key].default
            if getattr(self, key) != default and self.mode not in modes:
                choices = " or ".join(f'"{mode}"' for mode in modes)
                raise ValueError(
                    f"time.{key} needs time.mode = {choices}; set that mode, or omit time.{key}"
                )
        for mode, key in (("deadline", "deadline_s"), ("first", "first")):
            if self.mode == mode and getattr(self, key) is None:
                raise ValueError(f'time.mode = "{mode}" needs time.{key}; give it')
        return self


class EnergySection(Section):
    """How much energy computing and sending cost a device."""

    preset: EnergyPreset = "horowitz-45nm"
    """Computing energy of devices whose class names no preset of its own. Presets differ by two
    orders of magnitude; ratios between widths do not."""
    amplifier_efficiency: Annotated[float, Field(gt=0, le=1), at_least(1e-3)] = 1.0
    """Radiated power divided by the power that the amplifier draws; with 1, only radiated energy
    counts."""
    circuit_power_w: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    """Power that the transmitter draws in addition to the amplifier, while it sends."""
