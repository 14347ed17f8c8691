"""The base class of sections, and types of numbers with their limits."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


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


class Section(BaseModel):
    """A part of the description; it accepts only known keys and is immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
