"""The base class of sections, the names of parts, and types of numbers with their limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import pydantic
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from slimfl.errors import RequestError


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


#: Any value, but there must be one.
GIVEN = object()


@dataclass(frozen=True)
class Need:
    """A key that works only with some values of other keys."""

    key: str
    others: Mapping[str, Any]
    """The allowed values of other keys, or `GIVEN`."""
    of: tuple[Any, ...] | None = None
    """The values of the key that need them; otherwise all but its default."""
    why: str = ""

    def unmet(self, section: Section, default: Any, prefix: str) -> str | None:
        """What a section lacks, as a sentence; None if it has everything.

        Args:
            section: The values.
            default: Of the key.
            prefix: What is before the names of its keys: `radio.`.
        """
        value = attrgetter(self.key)(section)
        if value == default if self.of is None else value not in self.of:
            return None
        lacking = []
        for other, allowed in self.others.items():
            found = attrgetter(other)(section)
            if allowed is GIVEN and found is None:
                lacking.append(prefix + other)
            elif allowed is not GIVEN and found not in allowed:
                words = " or ".join(map(json.dumps, allowed))
                named = f"{prefix}{other} = {words}"
                lacking.append(f"no {prefix}{other}" if allowed == (None,) else named)
        if not lacking:
            return None
        said = prefix + self.key
        if self.of is not None:
            said += f" = {json.dumps(value)}"
        return f"{said} needs {' and '.join(lacking)}{self.why and ': '}{self.why}"


class Section(BaseModel):
    """A part of the description; it accepts only known keys and is immutable."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )
    needs: ClassVar[tuple[Need, ...]] = ()

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        name, marked, _ = type(self).__name__.partition("Section")
        for need in self.needs:
            field = type(self).model_fields.get(need.key)
            problem = need.unmet(
                self, field and field.default, f"{name.lower()}." if marked else ""
            )
            if problem is not None:
                raise ValueError(problem)
        return self

    def __repr_name__(self) -> str:
        return type(self).__name__.removesuffix("Section")

    if not TYPE_CHECKING:  # so that editors and mypy see every key

        def __init__(self, /, *given: object, **values: Any) -> None:
            """Refuse a mistake as the command line does, in one sentence."""
            from slimfl.experiment.mistakes import reject, sentence

            if given:
                raise RequestError(
                    f"{self.__repr_name__()} takes its keys by name, such as "
                    f"{next(iter(type(self).model_fields))}=...; slimfl.Experiment.read takes the "
                    "path of a TOML file or a dictionary"
                )
            reject(values, type(self))
            try:
                super().__init__(**values)
            except pydantic.ValidationError as error:
                raise sentence(error, type(self)) from None

        # sections inside sections are validated by pydantic, which knows the whole path of a key
        __init__.__pydantic_base_init__ = True
