"""The README's table and figure of the main experiment, from the folder of a run.

slimfl run --out FOLDER && python -m lab.first_run FOLDER
"""

import json
import sys
from pathlib import Path

from lab.pictures import save
from slimfl.report.figures.runs import accuracy_figure
from slimfl.report.tables import accuracy
from slimfl.results.records import find
from slimfl.results.summary import summarise

RESULTS = Path(__file__).parents[1] / "docs" / "results"
WIDTHS = ("0.5x", "1.0x")


def main(folder: Path) -> None:
    """Write `first-run.json` and `accuracy.svg`."""
    records = find([folder])
    summary = summarise(records)
    computing = {
        r.experiment.method: sum(x.compute_energy_j or 0 for x in r.lines) for r in records
    }
    both = sum(computing[method] for method in computing if "vanilla" in method)
    rows = []
    for row in summary.groups:
        shares = [row.mean(f"segments.{s + 1}.delivered_share") for s in range(row.segments)]
        delivered = [f"{100 * share:.1f}" for share in shares if share is not None]
        rows.append(
            [
                row.name + (", both" if row.computed else ""),
                *(accuracy(row, width) if width in row.widths else "" for width in WIDTHS),
                "" if row.computed else " / ".join(delivered),
                f"{row.mean('total.airtime_s'):.3f}",
                f"{row.mean('total.energy_j'):.4f}",
                f"{both if row.computed else computing[row.method]:.1f}",
            ]
        )
    document = {"rows": rows, "at equal energy": [each.words for each in summary.budgets]}
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    (RESULTS / "first-run.json").write_text(text, encoding="utf-8")
    save(accuracy_figure(records), RESULTS / "accuracy.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
