"""The results of runs for notebooks: numbers, a data frame, a figure, the trained network."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from pandas import DataFrame
from safetensors.torch import save_file
from torch import nn

from slimfl.data import Dataset
from slimfl.data.dataset import Moments
from slimfl.data.images import as_bytes
from slimfl.errors import RequestError
from slimfl.experiment import Experiment
from slimfl.methods.names import title
from slimfl.nn import Vector
from slimfl.nn.sub_network import standalone
from slimfl.report.figures.runs import accuracy_figure
from slimfl.results.frames import round_rows, run_rows
from slimfl.results.groups import channel_words
from slimfl.results.records import RunRecord
from slimfl.results.rules import sending_energy_j
from slimfl.round import RoundRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The final global model, flat, the network with it, and what gives the mean and the deviation by
#: which its images are normalised.
Trained = tuple[Vector, nn.Module, Callable[[], Moments]]

#: Images that pass through a network at once.
BATCH = 500


class ByWidth(dict[str, float]):
    """Numbers by the name of a width, `0.5x`, which are also found by the number 0.5."""

    def __missing__(self, width: object) -> float:
        name = width_name(width)
        if name == width:
            raise KeyError(f"there is no width {width!r}; choose from {', '.join(self) or 'none'}")
        return self[name]

    def __contains__(self, width: object) -> bool:
        return super().__contains__(width_name(width))

    def get(self, width: Any, default: Any = None) -> Any:
        """The number of a width, or the default."""
        return super().get(width_name(width), default)


def width_name(width: Any) -> str:
    """The name of a width given by name or as a number: `0.5x` for 0.5."""
    return f"{float(width)}x" if isinstance(width, int | float) else str(width)


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """One run: the experiment, its rounds, and the trained network."""

    experiment: Experiment
    lines: list[RoundRecord]
    """One per round, as in metrics.jsonl."""
    folder: Path | None
    """The run folder; None for a run that stayed in memory."""
    provenance: dict[str, Any]
    """Versions, the checksum of the data, and fingerprints of your own objects."""
    trained: Callable[[], Trained] = field(repr=False)
    """Returns the final model; a loaded run reads it only then."""

    @cached_property
    def _trained(self) -> Trained:
        return self.trained()

    @property
    def parameters(self) -> Vector:
        """The final global model, flat."""
        return self._trained[0]

    @property
    def network(self) -> nn.Module:
        """The slimmable network with these parameters; `model` gives one of its widths."""
        return self._trained[1]

    def model(self, width: float | str = 1.0) -> nn.Module:
        """The network of a width as an ordinary `nn.Module` without the other weights.

        Its input are normalised images [sample, channel, row, column].
        """
        widths = {f"{one}x": one for one in self.experiment.model.widths}
        name = width_name(width)
        if name not in widths:
            raise RequestError(f"this run has the widths {', '.join(widths)}, not {width}")
        return standalone(self.network, widths[name]).eval()

    def predict(self, images: Any, width: float | str = 1.0) -> NDArray[np.int64]:
        """The classes that the network of a width sees in some images.

        Args:
            images: [sample, row, column] with or without channels at the end, in bytes from 0 to
                255 or those divided by 255, as `Dataset.from_arrays` takes them.
            width: One of the run's widths.

        Returns:
            A class for every image.
        """
        pixels = as_bytes(images, "images")
        mean, deviation = self._trained[2]()
        model, found = self.model(width), []
        with torch.inference_mode():
            for first in range(0, len(pixels), BATCH):
                batch = (pixels[first : first + BATCH] / np.float32(255) - mean) / deviation
                inputs = torch.from_numpy(batch.astype(np.float32)).permute(0, 3, 1, 2)
                found.append(model(inputs).argmax(1).numpy())
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def evaluate(self, dataset: Dataset) -> ByWidth:
        """The accuracy of every width on a dataset's test samples."""
        images, labels = dataset.test.images, dataset.test.labels
        widths = self.experiment.model.widths
        return ByWidth(
            {width_name(w): float((self.predict(images, w) == labels).mean()) for w in widths}
        )

    def save(self, path: Path | str) -> None:
        """Write the weights of all widths to one safetensors file, by their names in `network`."""
        save_file(self.network.state_dict(), path)

    @property
    def final_accuracy(self) -> ByWidth:
        """Test accuracy of every width after the last evaluated round: `["0.5x"]` or `[0.5]`."""
        evaluated = [line.accuracy for line in self.lines if line.accuracy]
        return ByWidth(evaluated[-1] if evaluated else {})

    @property
    def energy_j(self) -> float:
        """Transmit energy of all devices in all rounds, also of uploads that were cut off."""
        return sending_energy_j(self.lines)

    @property
    def airtime_s(self) -> float:
        """Time on the air, added up over devices and rounds."""
        return sum(line.airtime_s for line in self.lines)

    @property
    def rounds(self) -> DataFrame:
        """One row per round, as a pandas data frame.

        Values per width are columns such as `accuracy_0.5x`, values per segment `delivered_1` and
        so on. Lists of devices become their lengths.
        """
        return round_rows([self.record])

    def plot(self) -> Figure:
        """Accuracy over the rounds, as a matplotlib figure."""
        return _shown(accuracy_figure([self.record]))

    @property
    def record(self) -> RunRecord:
        """The run as reports read it."""
        return RunRecord(
            self.folder or Path(), self.experiment, self.provenance, self.lines, class_counts=[]
        )

    def _facts(self) -> dict[str, str]:
        asked, done = self.experiment.rounds, len(self.lines)
        return {
            "method": title(self.experiment.method),
            "seed": str(self.experiment.seed),
            "channel": channel_words(self.record).removesuffix(" channel"),
            "rounds": str(done) if done == asked else f"{done} of {asked}",
            **{width: f"{accuracy:.1%}" for width, accuracy in self.final_accuracy.items()},
            "energy": f"{self.energy_j:.3g} J",
            "airtime": f"{self.airtime_s:.3g} s",
        }

    def __repr__(self) -> str:
        facts = self._facts()
        accuracies = ", ".join(f"{w} {facts[w]}" for w in self.final_accuracy) or "not tested"
        return (
            f"Run({facts['method']}, seed {facts['seed']}, {facts['channel']} channel, "
            f"{facts['rounds']} rounds: {accuracies})"
        )

    def _repr_html_(self) -> str:
        return _table([self._facts()])


class Runs(Sequence[Run]):
    """Several runs, in the order in which they were asked for."""

    def __init__(self, runs: Sequence[Run], folder: Path | None = None) -> None:
        self._runs, self.folder = list(runs), folder

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> Run | Runs:
        if isinstance(index, slice):
            return Runs(self._runs[index], self.folder)
        return self._runs[index]

    def where(self, **values: Any) -> Runs:
        """The runs that have these settings: `runs.where(method="slimfl", alpha=0.1)`."""
        rows = run_rows(self._records)
        for key in values:
            if any(key not in row for row in rows):
                known = ", ".join(rows[0]) if rows else "none"
                raise RequestError(f"these runs do not differ in {key!r}; choose from {known}")
        fitting = [
            run
            for run, row in zip(self._runs, rows, strict=True)
            if all(row[key] == value for key, value in values.items())
        ]
        return Runs(fitting, self.folder)

    @property
    def _records(self) -> list[RunRecord]:
        return [run.record for run in self._runs]

    @property
    def final_accuracy(self) -> ByWidth:
        """The mean over the runs, for widths that all of them tested."""
        each = [run.final_accuracy for run in self._runs]
        common = [width for width in each[0] if all(width in one for one in each)] if each else []
        return ByWidth({width: fmean(one[width] for one in each) for width in common})

    @property
    def rounds(self) -> DataFrame:
        """One row per run and round, with columns for settings that differ between the runs."""
        return round_rows(self._records)

    def summary(self) -> DataFrame:
        """One row per run: the settings that differ, final accuracies, energy and airtime."""
        return DataFrame(run_rows(self._records))

    def plot(self) -> Figure:
        """Accuracy over the rounds, by method; the band is from the lowest to the highest seed."""
        if not self._runs:
            raise RequestError("there are no runs to plot")
        return _shown(accuracy_figure(self._records))

    def __repr__(self) -> str:
        inside = "".join(f"\n  {run!r}," for run in self._runs[:20])
        more = f"\n  and {len(self) - 20} more" if len(self) > 20 else ""
        return f"Runs({len(self)} runs:{inside}{more})"

    def _repr_html_(self) -> str:
        differing = run_rows(self._records)
        fixed = {"method", "seed", "rounds", "airtime_s", "energy_j", "channel"}
        rows = []
        for run, row in zip(self._runs, differing, strict=True):
            extra = {
                key: str(value)
                for key, value in row.items()
                if key not in fixed and not key.startswith("accuracy_")
            }
            facts = run._facts()
            rows.append({**{k: facts[k] for k in ("method", "seed", "channel")}, **extra, **facts})
        return _table(rows)


def _table(rows: list[dict[str, str]]) -> str:
    """An HTML table; everything is escaped, as names may come from a stranger's run folder."""
    html: str = DataFrame(rows).to_html(index=False, na_rep="")
    return html


def _shown(figure: Figure) -> Figure:
    """A figure that a notebook displays, also without pyplot and its backends."""

    def png() -> bytes:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=100)
        return buffer.getvalue()

    figure._repr_png_ = png  # type: ignore[attr-defined]
    return figure
