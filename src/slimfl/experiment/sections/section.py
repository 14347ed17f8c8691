"""The base class of sections, the names of parts, and types of numbers with their limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import pydantic
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
)


def at_least(low: float) -> AfterValidator:
    """A lower limit besides `gt=0`, so that messages distinguish zero from too small."""

    def check(value: float) -> float:
        if value < low:
            raise ValueError(f"must be at least {low:g}")
        return value

    return AfterValidator(check)


# Every number has limits, far beyond what makes sense, within which no formula overflows and no
# array takes gigabytes.
Positive = Annotated[float, Field(gt=0, le=1e12), at_least(1e-12)]
Fraction = Annotated[float, Field(ge=0, le=1)]
BelowOne = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(ge=1, le=10**9)]
PowerDbm = Annotated[float, Field(ge=-300, le=300)]
Seconds = Annotated[float, Field(gt=0, le=1e7), at_least(1e-3)]
Rate = Annotated[float, Field(gt=0, le=100), at_least(1e-6)]

#: Placeholder for a part that was given as an object, not by name.
OWN = "own"


class Own(str):
    """The name of a part that was given as an object, together with the object."""

    part: Any

    def __new__(cls, part: Any, name: str | None = None) -> Own:
        """Name a part; a dataset that was loaded by name keeps that."""
        loaded_as = getattr(part, "loaded_as", None)
        made = super().__new__(cls, name or (loaded_as[0] if loaded_as else OWN))
        made.part = part
        return made

    def __eq__(self, other: object) -> bool:
        same_part = not isinstance(other, Own) or self.part is other.part
        return same_part and str(self) == str(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Own:
        return self


def _part(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool | int | float | list | tuple | dict | bytes):
        arrays = isinstance(value, list | tuple) and any(hasattr(v, "__array__") for v in value)
        way_on = "; slimfl.Dataset.from_arrays makes one of arrays" if arrays else ""
        raise ValueError(f"must be a name (a string) or an object{way_on}")
    return Own(value)


#: A built-in name, `package.module:Name`, or an object.
Part = Annotated[
    str | Any,
    PlainValidator(_part),
    PlainSerializer(str, when_used="json"),
    WithJsonSchema({"type": "string"}),
]


class Section(BaseModel):
    """A part of the description; it accepts only known keys and is immutable."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    def __repr_name__(self) -> str:
        return type(self).__name__.removesuffix("Section")

    if not TYPE_CHECKING:  # so that editors and mypy see every key

        def __init__(self, **values: Any) -> None:
            """Refuse a mistake as the command line does, in one sentence."""
            from slimfl.experiment.mistakes import reject, sentence

            reject(values, type(self))
            try:
                super().__init__(**values)
            except pydantic.ValidationError as error:
                raise sentence(error, type(self)) from None

        # sections inside sections are validated by pydantic, which knows the whole path of a key
        __init__.__pydantic_base_init__ = True
