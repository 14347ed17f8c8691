"""Numbers for readers; a dash if there is none."""

from slimfl.results.run_summary import RunSummary
from slimfl.results.seed_summary import GroupAccuracy, GroupSummary, Spread

NONE = "–"


def percent(accuracy: GroupAccuracy | None) -> str:
    """`84.1 ± 0.3`, in percent, with the deviation over seeds or else over rounds."""
    if accuracy is None:
        return NONE
    return f"{100 * accuracy.final.mean:.1f} ± {100 * accuracy.deviation:.1f}"


def share(spread: Spread | None) -> str:
    """`93.4`, in percent."""
    return NONE if spread is None else f"{100 * spread.mean:.1f}"


def number(spread: Spread | None, digits: int = 3) -> str:
    """Three significant digits, never as a power of ten.

    >>> number(Spread(1234.6, None)), number(Spread(0.01041, 0.001)), number(None)
    ('1,235', '0.0104', '–')
    """
    return NONE if spread is None else plain(spread.mean, digits)


def plain(value: float, digits: int = 3) -> str:
    """A number with the given significant digits, and all digits before the point."""
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    text = f"{value:#.{digits}g}"
    return (f"{float(text):.9f}".rstrip("0") if "e" in text else text).rstrip(".")


def total(segments: list[Spread]) -> float:
    """The mean over seeds of a sum over segments."""
    return sum(spread.mean for spread in segments)


def rounds(row: GroupSummary) -> str:
    """`20`, or `6/20` while a run is not complete."""
    return f"{row.rounds_done}" if row.complete else f"{row.rounds_done}/{row.rounds_asked}"


def converged(row: GroupSummary) -> str:
    """The round, or how many seeds converged."""
    if row.converged_round is not None:
        return f"{row.converged_round.mean:.0f}"
    return f"{row.converged_seeds} of {len(row.seeds)}" if row.converged_seeds else NONE


def width_names(rows: list[GroupSummary]) -> list[str]:
    """Every width that some row has, narrowest first."""
    return sorted({width for row in rows for width in row.accuracy}, key=lambda w: float(w[:-1]))


def privacy(run: RunSummary) -> str:
    """Epsilon and its delta; clipping without noise bounds nothing."""
    if run.privacy is None:
        return NONE
    epsilon = run.privacy["epsilon"]
    told = "unbounded" if epsilon is None else f"{epsilon:.3g}"
    return f"{told} ({run.privacy['delta']:g})"
