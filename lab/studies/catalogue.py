"""The studies by name."""

from lab.studies import local_work, regimes, rivals, split, widths
from lab.studies.study import Study
from slimfl.errors import RequestError

STUDIES: dict[str, Study] = {
    each.name: each
    for each in (regimes.STUDY, rivals.STUDY, widths.STUDY, local_work.STUDY, split.STUDY)
}


def study(name: str) -> Study:
    """The study of that name."""
    try:
        return STUDIES[name]
    except KeyError:
        raise RequestError(
            f"there is no study {name!r}; choose one of {', '.join(STUDIES)}"
        ) from None
