"""The `population` section: which devices there are, and which width each of them trains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import pydantic
from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    Tag,
    ValidatorFunctionWrapHandler,
    model_validator,
)

from slimfl.experiment.sections.section import GIVEN, Count, Fraction, Need, Positive, Section

#: The minimum and maximum of every quantity.
LIMITS: dict[str, tuple[float, float]] = {
    "max_width": (1e-3, 1.0),
    "macs_per_s": (1e-3, 1e21),
    "battery_j": (0.0, 1e15),
    "availability": (0.0, 1.0),
    "distance_m": (1e-3, 1e9),
    "power_dbm": (-300.0, 300.0),
    "data_share": (1e-9, 1e9),
}
#: The quantities of a device class; each is a number, a list, or a distribution.
QUANTITIES = tuple(LIMITS)

Number = Annotated[float, Field(ge=-1e21, le=1e21)]


class Uniform(Section, use_attribute_docstrings=False):
    """Equally likely between two numbers."""

    distribution: Literal["uniform"]
    low: Number
    high: Number

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if self.low > self.high:
            raise ValueError("low exceeds high")
        return self


class Lognormal(Section, use_attribute_docstrings=False):
    """Its logarithm is normal: the median, and the deviation of the natural logarithm."""

    distribution: Literal["lognormal"]
    median: Positive | Annotated[float, Field(gt=0, le=1e21)]
    sigma: Annotated[float, Field(ge=0, le=10)]


class OneOf(Section, use_attribute_docstrings=False):
    """One of some values, each as likely as its weight; equally likely without weights."""

    distribution: Literal["choice"]
    values: Annotated[tuple[Number, ...], Field(min_length=1)]
    weights: tuple[Positive, ...] | None = None

    @model_validator(mode="after")
    def _as_many(self) -> Self:
        if self.weights is not None and len(self.weights) != len(self.values):
            raise ValueError("values and weights differ in number")
        return self


class Disc(Section, use_attribute_docstrings=False):
    """A distance from the centre of a disc on which devices are spread evenly.

    Nobody is nearer than `inner_m`.
    """

    distribution: Literal["disc"]
    radius_m: Annotated[float, Field(gt=0, le=1e9)]
    inner_m: Annotated[float, Field(ge=1e-3, le=1e9)] = 1.0

    @model_validator(mode="after")
    def _a_ring(self) -> Self:
        if self.inner_m > self.radius_m:
            raise ValueError("inner_m exceeds radius_m")
        return self


#: How a quantity is distributed, by name.
Distribution = Uniform | Lognormal | OneOf | Disc


def _kind(value: Any) -> str | None:
    if isinstance(value, Section):
        return str(getattr(value, "distribution", None))
    if isinstance(value, dict):
        return str(value.get("distribution"))
    return "list" if isinstance(value, list | tuple) else "number"


#: A number for all devices of a class, one number per device in a list, or a distribution.
Quantity = Annotated[
    Annotated[Number, Tag("number")]
    | Annotated[tuple[Number, ...], Tag("list")]
    | Annotated[Uniform, Tag("uniform")]
    | Annotated[Lognormal, Tag("lognormal")]
    | Annotated[OneOf, Tag("choice")]
    | Annotated[Disc, Tag("disc")],
    Discriminator(
        _kind,
        custom_error_type="distribution",
        custom_error_message="no such distribution; choose uniform, lognormal, choice or disc",
    ),
]


class DeviceClass(Section):
    """Devices of one kind. A quantity is a number, a list or a distribution."""

    name: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[\w.+-]+$")]
    """Name of the class; letters, digits and . + - _."""
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Of all devices; the shares of all classes sum to 1."""
    max_width: Quantity | None = None
    """The widest width that a device can train; 1.0 when absent."""
    macs_per_s: Quantity | None = None
    """Speed of computing in multiply-adds per second; when absent, computing takes no time."""
    energy: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[\w.+-]+$")] = "default"
    """Energy preset of the processor; `default`: the preset for all devices."""
    battery_j: Quantity | None = None
    """Battery charge at the start; absent: mains power."""
    availability: Quantity = 1.0
    """Share of the rounds in which a device can be reached."""
    distance_m: Quantity | None = None
    """Distance from the server's antenna, in a random direction; `radio.distance_m` when absent."""
    power_dbm: Quantity | None = None
    """Transmit power; `radio.power_dbm` when absent."""
    data_share: Quantity = 1.0
    """Amount of data that a device holds, relative to the others."""

    @model_validator(mode="wrap")
    @classmethod
    def _say_which(cls, values: Any, handler: ValidatorFunctionWrapHandler) -> Self:
        """Name the class and its key in an error, instead of a position in the list."""
        named = values.get("name", "?") if isinstance(values, dict) else "?"
        try:
            made: Self = handler(values)
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = str(first["loc"][0]) if first["loc"] else ""
            message = first["msg"].removeprefix("Value error, ")
            known = ", ".join(cls.model_fields)
            if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
                message = f"there is no such key; choose from {known}"
            words = f"{key}: {message[:1].lower()}{message[1:]}" if key else message
            raise ValueError(f"population.classes, class {str(named)[:64]!r}: {words}") from None
        for key in QUANTITIES:
            problem = _outside(key, getattr(made, key))
            if problem is not None:
                raise ValueError(f"population.classes, class {made.name!r}: {key} {problem}")
        return made


def _outside(key: str, quantity: Any) -> str | None:
    """Why no device can have such a value; None if one can."""
    low, high = LIMITS[key]
    match quantity:
        case Uniform():
            extremes: tuple[float, ...] = (quantity.low, quantity.high)
        case Lognormal():
            extremes = (quantity.median,)
        case OneOf():
            extremes = quantity.values
        case Disc():
            if key != "distance_m":
                return "is no distance, and disc is for distance_m alone; choose another"
            extremes = (quantity.inner_m, quantity.radius_m)
        case tuple():
            extremes = quantity
        case None:
            extremes = ()
        case number:
            extremes = (number,)
    wrong = next((value for value in extremes if not low <= value <= high), None)
    return None if wrong is None else f"is {wrong:g}; give {low:g} to {high:g}"


class Correlation(Section):
    """How two quantities go together: far devices that are also slow have a negative rank."""

    between: tuple[str, str]
    rank: Annotated[float, Field(ge=-1, le=1)]
    """Spearman's rank correlation, within every class."""

    @model_validator(mode="after")
    def _two_quantities(self) -> Self:
        for key in self.between:
            if key not in QUANTITIES:
                raise ValueError(
                    f"population.correlations: there is no quantity {key[:64]!r}; "
                    f"choose from {', '.join(QUANTITIES)}"
                )
        if self.between[0] == self.between[1]:
            raise ValueError("population.correlations: give two different quantities")
        return self


class PopulationSection(Section):
    """The devices, and which width each of them trains."""

    preset: Literal["paper", "cell", "phones", "sensors"] = "paper"
    """`paper`: all alike, at `radio.distance_m`; `cell`: spread over a disc; `phones`: three tiers
    of phones; `sensors`: battery-powered microcontrollers. Your own classes replace it."""
    file: Annotated[Path, AfterValidator(Path.absolute)] | None = None
    """A `devices.csv` of another run: the same devices again; it replaces preset and classes."""
    classes: tuple[DeviceClass, ...] = ()
    """Kinds of devices."""
    correlations: tuple[Correlation, ...] = ()
    """Rank correlations between quantities."""
    width: Literal["capability", "fixed", "random", "growing", "battery"] = "capability"
    """How wide a device trains in a round: as wide as it can, `fixed_width` at most, a width drawn
    anew in every round, one width more every `grow_every` rounds, or by what its battery has
    left."""
    fixed_width: Fraction | None = None
    """The widest width of `width = "fixed"`."""
    grow_every: Count = 10
    """Rounds until the next width of `width = "growing"`."""
    needs: ClassVar = (
        Need("fixed_width", {"width": ("fixed",)}),
        Need("width", {"fixed_width": GIVEN}, of=("fixed",)),
    )

    @model_validator(mode="after")
    def _shares_sum_to_one(self) -> Self:
        total = sum(each.share for each in self.classes)
        if self.classes and abs(total - 1) > 1e-6:
            raise ValueError(
                f"the shares of population.classes sum to {total:g}; make them sum to 1"
            )
        names = [each.name for each in self.classes]
        if len({*names}) < len(names):
            raise ValueError("two of population.classes have the same name; rename one")
        return self

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [
            key
            for key, has in (
                ("preset", self.preset != "paper"),
                ("file", self.file is not None),
                ("classes", bool(self.classes)),
            )
            if has
        ]
        if len(given) > 1:
            both = " and ".join(f"population.{key}" for key in given)
            raise ValueError(f"{both} both describe the devices; give only one of them")
        if self.correlations and given in ([], ["file"]):
            raise ValueError(
                "population.correlations needs classes or a preset with random values; add them or "
                "omit the correlations"
            )
        return self

    @property
    def is_default(self) -> bool:
        """Whether all devices are alike and train what they can, as in the paper."""
        return self == PopulationSection()
