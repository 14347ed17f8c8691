"""What sections are made of: the base class, and numbers with their limits."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def at_least(low: float) -> AfterValidator:
    """A lower limit beside `gt=0`, so that zero is told from too small."""

    def check(value: float) -> float:
        if value < low:
            raise ValueError(f"must be at least {low:g}")
        return value

    return AfterValidator(check)


# Every number has limits, far outside of what makes sense, within which no formula overflows and
# nothing that is allocated in proportion to it takes gigabytes.
Positive = Annotated[float, Field(gt=0, le=1e12), at_least(1e-12)]
Fraction = Annotated[float, Field(ge=0, le=1)]
BelowOne = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(ge=1, le=10**9)]
PowerDbm = Annotated[float, Field(ge=-300, le=300)]
Seconds = Annotated[float, Field(gt=0, le=1e7), at_least(1e-3)]
Rate = Annotated[float, Field(gt=0, le=100), at_least(1e-6)]


class Section(BaseModel):
    """A part of the description; it accepts known keys only and never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
