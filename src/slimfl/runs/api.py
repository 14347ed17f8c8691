"""The library in a few calls: run an experiment, resume one, load its results."""

import copy
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from torch import nn

from slimfl import experiment as config
from slimfl.data import Dataset, load_section
from slimfl.engines import ChooseEngine, choose
from slimfl.errors import RequestError
from slimfl.experiment import Experiment
from slimfl.experiment.naming import module_of, trusting
from slimfl.methods import Method
from slimfl.nn import build, load_flat
from slimfl.radio import Channel
from slimfl.results import find
from slimfl.results.records import RunRecord
from slimfl.round import Callback, RunFolder, Simulation
from slimfl.round import run as run_simulation
from slimfl.runs.callbacks import check_hooks
from slimfl.runs.extending import extend, extended
from slimfl.runs.own import require
from slimfl.runs.progress import ProgressCallback
from slimfl.runs.run import Run, Runs, Trained
from slimfl.runs.trackers import check_trackers

log = logging.getLogger(__name__)

#: The callbacks of a run: objects, or names as in the configuration.
Watchers = Sequence[Callback | str | dict[str, Any]]


@overload
def run(path: config.Source = None, *, seed: Sequence[int], **given: Any) -> Runs: ...
@overload
def run(path: config.Source = None, *, seed: int | None = None, **given: Any) -> Run: ...
def run(
    path: config.Source = None,
    *,
    seed: int | Sequence[int] | None = None,
    out: Path | str | None = None,
    overrides: Iterable[str] = (),
    dataset: Dataset | str | None = None,
    network: nn.Module | None = None,
    channel: Channel | str | None = None,
    method: str | Method | None = None,
    callbacks: Watchers = (),
    progress: bool = False,
    trust: Iterable[str] = (),
    **values: Any,
) -> Run | Runs:
    """Run one experiment and return its results.

    Args:
        path: A TOML file to start from, what such a file contains as a dictionary, or an
            `Experiment`; the defaults otherwise.
        seed: The seed, or a list of seeds for one run each, one after the other.
        out: The run folder to write, or with several seeds the folder of run folders; without it
            the runs stay in memory.
        overrides: Changes such as `"radio.noise_dbm=-40"`.
        dataset: The name of a dataset, or your own data.
        network: Your own network of slimmable layers instead of `model.name`, used as it is.
        channel: `good` or `poor`, or your own channel instead of the `radio` section's.
        method: A method's name, or your own method.
        callbacks: Callbacks that watch the run: objects, or names as in the configuration.
        progress: Show how far the run is, in a terminal or in a notebook.
        trust: Modules that a name in the TOML file may be imported from. Names in `overrides` and
            `values` need none.
        **values: Changes by short name, `alpha=0.1`, or with two underscores for the dot:
            `radio__noise_dbm=-40`. See `slimfl.experiment.short_names`.
    """
    if seed is not None and not isinstance(seed, Sequence):
        values["seed"] = seed
    parts = {"dataset": dataset, "channel": channel, "method": method}
    values |= {name: part for name, part in parts.items() if isinstance(part, str)}
    own_dataset = None if isinstance(dataset, str) else dataset
    own_channel = None if isinstance(channel, str) else channel
    own_method = None if isinstance(method, str) else method
    _check_objects(own_dataset, network, own_channel, own_method)
    _check_callbacks(callbacks, (Callback, str, dict))
    if own_method is not None:
        values["method"] = own_method.name
    overrides = list(overrides)
    named = [each for each in callbacks if isinstance(each, str | dict)]
    if named:
        values["callbacks"] = named
    watching = [each for each in callbacks if isinstance(each, Callback)]
    if progress:
        watching.append(ProgressCallback())
    seeds = list(seed) if isinstance(seed, Sequence) else None
    if seeds is not None:
        values["seed"] = seeds
    _check_not_named(config.asked(overrides, values), own_dataset, network, own_channel)
    experiments = config.load(path, overrides, **values)
    if len(experiments) != len(seeds or [0]):
        raise RequestError(
            f"run() takes one experiment and this describes {len(experiments)}; use slimfl.sweep "
            "for several"
        )
    typed = filter(None, map(module_of, config.typed_names(overrides, **values)))
    with trusting([*_modules(trust), *typed]):
        runs = []
        for experiment in experiments:
            sim = Simulation(
                experiment,
                dataset=own_dataset,
                # every seed starts from the given network
                network=network if seeds is None else copy.deepcopy(network),
                channel=own_channel,
                method=own_method,
            )
            folder = None
            if out is not None:
                check_trackers(sim.experiment.track)
                at = Path(out) if seeds is None else Path(out) / f"seed{experiment.seed}"
                folder = RunFolder.create(at, sim.experiment, sim.setting.provenance())
            runs.append(_finish(sim, folder, watching))
    return runs[0] if seeds is None else Runs(runs, Path(out) if out else None)


def resume(
    path: Path | str,
    *,
    rounds: int | None = None,
    dataset: Dataset | None = None,
    network: nn.Module | None = None,
    channel: Channel | None = None,
    method: Method | None = None,
    engine: ChooseEngine = choose,
    callbacks: Sequence[Callback] = (),
    progress: bool = False,
    trust: Iterable[str] = (),
) -> Run:
    """Resume the run in a folder; your own objects must be given again, as they are not stored.

    With `rounds` it continues up to that number, also after its end; a run that ended early stays
    ended, as one of that number would have.
    `trust` names the modules that may be imported because the folder names them. `engine` chooses
    the arithmetic; in a Flower ServerApp, that of the devices there.
    """
    _check_objects(dataset, network, channel, method)
    _check_callbacks(callbacks, (Callback,))
    folder = RunFolder.open(Path(path))
    objects = {"dataset": dataset, "network": network, "channel": channel, "method": method}
    require(folder.provenance(), {kind for kind, one in objects.items() if one is not None})
    experiment = folder.experiment() if rounds is None else extended(folder, rounds)
    check_trackers(experiment.track)
    with trusting(_modules(trust)):
        sim = Simulation(
            experiment,
            dataset=dataset,
            network=network,
            channel=channel,
            method=method,
            engine=engine,
        )
        sim.setting.check_provenance(folder.provenance())
        if rounds is not None:
            for remark in extend([folder], rounds):
                log.warning("%s", remark)
        return _finish(sim, folder, [*callbacks, *([ProgressCallback()] if progress else [])])


def load(
    path: Path | str,
    *,
    dataset: Dataset | None = None,
    network: nn.Module | None = None,
    trust: Iterable[str] = (),
) -> Run | Runs:
    """Load a run folder (a `Run`), or a folder of run folders (`Runs`).

    Nothing is computed, and an unfinished run has the rounds so far. The network is built on
    request; for that, your own network must be given again (its weights are replaced), and so must
    your own `dataset`.
    """
    _check_objects(dataset, network)
    at, modules = Path(path), _modules(trust)
    runs = [_loaded(record, dataset, network, modules) for record in find([at])]
    return runs[0] if runs[0].folder == at else Runs(runs, at)


def _loaded(
    record: RunRecord, dataset: Dataset | None, network: nn.Module | None, modules: list[str]
) -> Run:
    def trained() -> Trained:
        checkpoint = RunFolder.open(record.path).checkpoint()
        if checkpoint is None:
            raise RequestError(f"{record.path} has no checkpoint yet, so there is no network")
        parameters = checkpoint.tensors["global"]
        with trusting(modules):
            made = copy.deepcopy(network) if network else _built(record.experiment, dataset)
        try:
            load_flat(made, parameters)
        except ValueError as error:
            raise RequestError(f"{record.path} was made with another network: {error}") from None
        return parameters, made

    return Run(record.experiment, record.lines, record.path, record.provenance, trained)


def _built(experiment: Experiment, dataset: Dataset | None) -> nn.Module:
    """The network that an experiment names, for the images and classes of its data."""
    if experiment.model.name == config.OWN:
        raise RequestError(
            "this run was made with a network object, which its folder cannot store; use "
            "slimfl.load(path, network=...)"
        )
    data = dataset or load_section(experiment.data)
    return build(
        experiment.model.name,
        experiment.model.options,
        in_channels=data.train.images.shape[-1],
        classes=data.classes,
        widths=experiment.model.widths,
        initialisation=experiment.model.initialisation,
        seed=experiment.seed,
    )


#: What an object of one's own must have.
_PARTS = {
    "channel": ("needs_payload", "start", "links", "receive", "probabilities"),
    "method": ("name", "evaluates", "assign", "start", "merge"),
}


def _check_objects(
    dataset: object, network: object = None, channel: object = None, method: object = None
) -> None:
    """Refuse objects that are not what they are given as, before they fail in the middle."""
    _check_dataset(dataset)
    if network is not None and not isinstance(network, nn.Module):
        named = f"; to name one, use model__name={network!r}" if isinstance(network, str) else ""
        raise RequestError(
            f"network= takes a torch network of slimmable layers, and this is of type "
            f"{_kind(network)}{named}"
        )
    for word, part in (("channel", channel), ("method", method)):
        lacking = [name for name in _PARTS[word] if not hasattr(part, name)]
        if part is None or (not lacking and not isinstance(part, type)):
            continue
        why = f"of type {_kind(part)}, without {', '.join(lacking)}"
        if isinstance(part, type):
            why = f"the class {part.__name__}; call it to make an object"
        raise RequestError(
            f"{word}= takes a name or an object with {', '.join(_PARTS[word])}, and this is {why}"
        )


def _check_not_named(
    asked: Mapping[str, Any], dataset: Dataset | None, network: object, channel: object
) -> None:
    """Refuse an object and a name for the same part."""
    if dataset is not None and dataset.loaded_as is not None:
        dataset = None if dataset.loaded_as[0] == asked.get("data.dataset") else dataset
    for word, part, keys in (
        ("dataset", dataset, ("data.dataset",)),
        ("network", network, ("model.name",)),
        ("channel", channel, ("radio.model", "radio.channel")),
    ):
        named = next((key for key in keys if key in asked), None)
        if part is not None and named is not None:
            raise RequestError(f"give {word}= as an object or {named}, not both")


def _check_callbacks(callbacks: object, kinds: tuple[type, ...]) -> None:
    allowed = "slimfl.Callback objects" + (" or names" if str in kinds else "")
    if isinstance(callbacks, str | dict | Callback) or not isinstance(callbacks, Sequence):
        raise RequestError(f"callbacks= takes a list of {allowed}; put it into square brackets")
    for each in callbacks:
        if not isinstance(each, kinds):
            raise RequestError(f"callbacks= takes {allowed}, and one is of type {_kind(each)}")
        if isinstance(each, Callback):
            check_hooks(each)


def _kind(given: object) -> str:
    module = type(given).__module__.partition(".")[0]
    name = type(given).__name__
    return name if module == "builtins" else f"{module} {name}"


def _check_dataset(dataset: object) -> None:
    if dataset is None or isinstance(dataset, Dataset):
        return
    kind = _kind(dataset)
    maker = "from_arrays(train_images, train_labels, test_images, test_labels)"
    if hasattr(dataset, "__getitem__") and not isinstance(dataset, tuple | list):
        maker = "from_torch(train, test)"
    raise RequestError(
        f"dataset= takes a slimfl.data.Dataset, and this is a {kind}: make one with Dataset.{maker}"
    )


def _modules(trust: Iterable[str]) -> list[str]:
    return [trust] if isinstance(trust, str) else list(trust)


def _finish(sim: Simulation, folder: RunFolder | None, callbacks: Sequence[Callback]) -> Run:
    lines = run_simulation(sim, folder, callbacks)
    trained = sim.global_model, sim.trained_network()
    return Run(
        sim.experiment,
        lines,
        folder.path if folder else None,
        sim.setting.provenance(),
        lambda: trained,
    )
