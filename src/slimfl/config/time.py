"""The `time` and `energy` sections: when a round ends, and what work costs."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from slimfl.config.base import Count, Section, at_least

#: Virtual seconds; the limits are beyond those of any real device.
VirtualSeconds = Annotated[float, Field(gt=0, le=1e9), at_least(1e-9)]

#: The presets of computing energy; `slimfl.population.computing_energy` has their numbers.
EnergyPreset = Literal["none", "horowitz-45nm", "kappa-1e-28", "kappa-1e-27", "raspberry-pi-4"]


class TimeSection(Section):
    """The virtual clock: how long a round lasts, and who is in time."""

    mode: Literal["wait-for-all", "deadline", "first", "over-commit", "asynchronous"] = (
        "wait-for-all"
    )
    """When the server merges: after all devices; at `deadline_s`; after the `first` updates; after
    as many as `federation.participation` says, of `over_commit` times as many devices asked; or,
    asynchronously, whenever a segment's `buffer` is full."""
    deadline_s: VirtualSeconds | None = None
    """When the server stops listening; needed by `deadline`, possible with `first` and
    `over-commit`."""
    first: Count | None = None
    """Updates that a round of `mode = "first"` waits for."""
    over_commit: Annotated[float, Field(ge=1, le=1000)] = 1.3
    """Devices asked for each one wanted, with `mode = "over-commit"`."""
    concurrency: Count | None = None
    """Devices that work at once in asynchronous mode; absent: `federation.participation` of all."""
    buffer: Count | None = None
    """Uploads after which a segment is merged in asynchronous mode; absent: as many as work at
    once."""
    buffer_counts: Literal["uploads", "arrivals"] = "uploads"
    """What takes a place in a segment's buffer: every upload that was to bring it, or only what the
    channel let through."""
    staleness_exponent: Annotated[float, Field(ge=0, le=10)] = 0.5
    """A stale change counts 1 / (1 + staleness) to this power; 0: as much as a fresh one."""
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
    """What computing and sending take from a device."""

    preset: EnergyPreset = "horowitz-45nm"
    """Computing energy of devices whose class names no preset of its own. Presets differ by two
    orders of magnitude; ratios between widths do not."""
    amplifier_efficiency: Annotated[float, Field(gt=0, le=1), at_least(1e-3)] = 1.0
    """Radiated power over what the amplifier draws for it; 1: radiated energy is counted."""
    circuit_power_w: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    """What the transmitter draws beside the amplifier, for as long as it sends."""
