"""All questions by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lab.exhibits import accuracies, budget, convergence, formulas
from lab.question import Question
from lab.studies.local_work import LOCAL_WORK
from lab.studies.regimes import REGIMES
from lab.studies.rivals import RIVALS
from lab.studies.split import SPLIT
from lab.studies.widths import MANY_WIDTHS
from slimfl.errors import RequestError


def _by_name(*questions: Question) -> dict[str, Question]:
    return {question.name: question for question in questions}


#: In the paper's order; `budget` is the paper's own comparison, the last two ask about its gaps.
EXHIBITS = _by_name(
    formulas.TABLE1, accuracies.TABLE3, formulas.TABLE4, formulas.TABLE5, formulas.TABLE6,
    convergence.TABLE7, accuracies.FIG2, formulas.FIG3, formulas.FIG4, accuracies.FIG5,
    accuracies.FIG6, accuracies.FIG7, budget.BUDGET, accuracies.CHOICES, accuracies.VANILLA,
)  # fmt: skip
STUDIES = _by_name(REGIMES, RIVALS, MANY_WIDTHS, LOCAL_WORK, SPLIT)


def chosen(questions: Mapping[str, Question], names: Iterable[str]) -> list[Question]:
    """The questions of these names, in their order; `all` is all but those asked for by name."""
    asked = set(names) or {"all"}
    unknown = asked - {*questions, "all"}
    if unknown:
        raise RequestError(
            f"there is no {', '.join(sorted(unknown))}; choose among {', '.join(questions)} or all"
        )
    return [
        each
        for name, each in questions.items()
        if name in asked or ("all" in asked and each.in_all)
    ]
