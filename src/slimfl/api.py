"""The library in two calls: run an experiment, resume one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from slimfl import config
from slimfl.config import Experiment
from slimfl.data import Dataset
from slimfl.engines import ChooseEngine, choose
from slimfl.errors import RequestError
from slimfl.federation import Callback, RoundRecord, RunFolder, Simulation
from slimfl.federation import run as run_simulation
from slimfl.federation.own import require
from slimfl.federation.trackers import check_trackers
from slimfl.methods import Method
from slimfl.naming import module_of, trusting
from slimfl.nn import Vector
from slimfl.radio import Channel


@dataclass(frozen=True, eq=False)
class Run:
    """What a finished run leaves."""

    experiment: Experiment
    lines: list[RoundRecord]
    """One a round, as in metrics.jsonl."""
    parameters: Vector
    """The final global model, flat."""
    network: nn.Module
    """The network with these parameters in it."""
    folder: Path | None

    @property
    def final_accuracy(self) -> dict[str, float]:
        """Test accuracy of every width after the last evaluated round."""
        evaluated = [line.accuracy for line in self.lines if line.accuracy]
        return dict(evaluated[-1]) if evaluated else {}


def run(
    path: Path | str | None = None,
    *,
    out: Path | str | None = None,
    overrides: Iterable[str] = (),
    dataset: Dataset | None = None,
    network: nn.Module | None = None,
    channel: Channel | None = None,
    method: str | Method | None = None,
    callbacks: Sequence[Callback | str | dict[str, Any]] = (),
    trust: Iterable[str] = (),
    **values: Any,
) -> Run:
    """Run one experiment and return what came of it.

    Args:
        path: A TOML file to start from; the defaults otherwise.
        out: The run folder to write; without it the run stays in memory.
        overrides: Changes such as `"radio.noise_dbm=-40"`.
        dataset: Your own data instead of `data.dataset`.
        network: Your own network of slimmable layers instead of `model.name`, used as it is.
        channel: Your own channel instead of the `radio` section's.
        method: A method's name, or your own method.
        callbacks: Who watches the run: objects, or names as in the configuration.
        trust: Modules that a name in the TOML file may be imported from. Names in `overrides` and
            `values` need none.
        **values: Changes with two underscores for the dot: `radio__noise_dbm=-40`.
    """
    _check_dataset(dataset)
    own_method = None if isinstance(method, str) else method
    if isinstance(method, str):
        values["method"] = method
    elif method is not None:
        values["method"] = method.name
    overrides = list(overrides)
    named = [each for each in callbacks if isinstance(each, str | dict)]
    if named:
        values["callbacks"] = named
    watching = [each for each in callbacks if isinstance(each, Callback)]
    experiments = config.load(Path(path) if path else None, overrides, **values)
    if len(experiments) != 1:
        raise RequestError(f"run() takes one experiment, and this describes {len(experiments)}")
    typed = filter(None, map(module_of, config.typed_names(overrides, **values)))
    with trusting([*_modules(trust), *typed]):
        sim = Simulation(
            experiments[0], dataset=dataset, network=network, channel=channel, method=own_method
        )
        folder = None
        if out is not None:
            check_trackers(sim.experiment.track)
            folder = RunFolder.create(Path(out), sim.experiment, sim.provenance())
        return _finish(sim, folder, watching)


def resume(
    path: Path | str,
    *,
    dataset: Dataset | None = None,
    network: nn.Module | None = None,
    channel: Channel | None = None,
    method: Method | None = None,
    engine: ChooseEngine = choose,
    callbacks: Sequence[Callback] = (),
    trust: Iterable[str] = (),
) -> Run:
    """Go on with the run in a folder; own objects must be given again, they are not stored.

    `trust` names the modules that may be imported because the folder names them. `engine` chooses
    who does the arithmetic; in a Flower ServerApp, the devices there.
    """
    folder = RunFolder.open(Path(path))
    objects = {"dataset": dataset, "network": network, "channel": channel, "method": method}
    require(folder.provenance(), {kind for kind, one in objects.items() if one is not None})
    check_trackers(folder.experiment().track)
    with trusting(_modules(trust)):
        sim = Simulation(
            folder.experiment(),
            dataset=dataset,
            network=network,
            channel=channel,
            method=method,
            engine=engine,
        )
        sim.check_provenance(folder.provenance())
        return _finish(sim, folder, callbacks)


def _check_dataset(dataset: object) -> None:
    if dataset is None or isinstance(dataset, Dataset):
        return
    kind = f"{type(dataset).__module__.partition('.')[0]} {type(dataset).__name__}"
    maker = "from_arrays(train_images, train_labels, test_images, test_labels)"
    if hasattr(dataset, "__getitem__") and not isinstance(dataset, tuple | list):
        maker = "from_torch(train, test)"
    raise RequestError(
        f"dataset= takes a slimfl.data.Dataset, and this is a {kind}: make one with "
        f"Dataset.{maker}"
    )


def _modules(trust: Iterable[str]) -> list[str]:
    return [trust] if isinstance(trust, str) else list(trust)


def _finish(sim: Simulation, folder: RunFolder | None, callbacks: Sequence[Callback]) -> Run:
    lines = run_simulation(sim, folder, callbacks)
    return Run(
        sim.experiment,
        lines,
        sim.global_model,
        sim.trained_network(),
        folder.path if folder else None,
    )
