"""The library in a few calls: compare experiments, resume a run, load results."""

import copy
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from torch import nn

from slimfl import experiment as config
from slimfl.data import Dataset, load_section
from slimfl.engines import ChooseEngine, choose
from slimfl.errors import RequestError
from slimfl.experiment import Experiment, Source
from slimfl.experiment.loading import tree_of
from slimfl.experiment.naming import trusting
from slimfl.methods import Method, expand
from slimfl.nn import load_flat, network_of
from slimfl.radio import Channel
from slimfl.results.records import RunRecord, find
from slimfl.round import Callback, RunFolder, Simulation
from slimfl.round import run as run_simulation
from slimfl.runs.callbacks import check_hooks
from slimfl.runs.loop import extend, extended
from slimfl.runs.own import require
from slimfl.runs.progress import taking_turns, watching
from slimfl.runs.run import Run, Runs, Trained
from slimfl.runs.storage.run_folder import EXPERIMENT
from slimfl.runs.sweeps.job import Job, complete, new_group, run_name, simulation_of
from slimfl.runs.sweeps.local import check_place, run_jobs
from slimfl.runs.trackers import check_trackers

log = logging.getLogger(__name__)

#: The callbacks of a run: objects, or names as in the configuration.
Watchers = Sequence[Callback | str | dict[str, Any]]

#: What is compared if nobody says which methods: SlimFL and Vanilla FL at every width.
DEFAULT_METHODS = ("slimfl", "vanilla-all")


def run(
    experiment: Experiment,
    out: Path | str | None = None,
    *,
    callbacks: Watchers = (),
    progress: bool = False,
    trust: Iterable[str] = (),
) -> Run:
    """Run one experiment in a new folder or in memory; see `Experiment.run`."""
    objects, names = _watchers(callbacks)
    if names:
        experiment = experiment.change(callbacks=names)
    _check_parts(experiment.own_parts())
    job = Job(Path(f"{experiment.method}, seed {experiment.seed}"), experiment)
    with trusting(_modules(trust)), taking_turns([job], progress) as shown:
        simulation = simulation_of(experiment)
        folder = None
        if out is not None:
            check_trackers(experiment.track)
            folder = RunFolder.create(
                Path(out), simulation.experiment, simulation.setting.provenance()
            )
        return _carried_out(simulation, folder, [*objects, *shown(0)])


def compare(
    experiment: Source = None,
    *,
    seeds: int | None = None,
    out: Path | str | None = None,
    on: str | None = None,
    workers: int | None = None,
    callbacks: Watchers = (),
    progress: bool = False,
    trust: Iterable[str] = (),
    **changes: Any,
) -> Runs:
    """Run every combination of the settings that are lists, as `slimfl run` does.

    `slimfl.compare(experiment, method=["slimfl", "fjord"], data={"alpha": [0.1, 1]}, seeds=2)` is
    eight runs. Without a method, SlimFL is compared with Vanilla FL at every width.

    Args:
        experiment: An `Experiment`, the path of a TOML file, or what such a file contains as a
            dictionary; the defaults otherwise.
        seeds: Number of seeds, from the experiment's own on.
        out: The folder for the run folders. The same call again goes on where it stopped. Without
            it, the runs stay in memory.
        on: `local` (a process per core, or as many as `workers`), `ray`, or the address of a Ray
            cluster such as `ray://head:10001`. Otherwise the runs take turns in this process,
            where objects (a dataset, network, channel, method or callback) have to stay.
        workers: How many runs at once.
        callbacks: Who watches each run: objects, or names as in the configuration.
        progress: Show how far all runs are.
        trust: Modules that a `package.module:Name` may be imported from.
        **changes: Settings, as `Experiment` takes them; a list is one run per value.
    """
    given = config.asked((), changes)
    if seeds is not None:
        first = given.get("seed", tree_of(experiment).get("seed", 0))
        given["seed"] = [first + number for number in range(seeds)]
    runs = planned(experiment, given)
    objects, names = _watchers(callbacks)
    for name, one in runs.items():
        if names:
            runs[name] = one.change(callbacks=names)
        _check_parts(one.own_parts())
    if on is not None:
        check_place(on)
        if objects or any(one.own_parts() for one in runs.values()):
            raise RequestError("objects cannot leave this process; name them, or omit on=")
        if out is None:
            raise RequestError("runs in other processes need a folder; give out=")
    modules = _modules(trust)
    with trusting(modules):
        if out is None:
            jobs = [Job(Path(name), one) for name, one in runs.items()]
            with taking_turns(jobs, progress) as shown:
                return Runs(
                    [
                        _carried_out(
                            simulation_of(_with_own_network(job.experiment)),
                            None,
                            [*objects, *shown(number)],
                        )
                        for number, job in enumerate(jobs)
                    ]
                )
        built = build_missing(Path(out), runs)
        with new_group(Path(out)):
            begin(Path(out), built)
            jobs = [Job(Path(out) / name, one) for name, one in runs.items()]
            if on is None:
                with taking_turns(jobs, progress) as shown:
                    carry_out(jobs, built, lambda number: [*objects, *shown(number)])
            else:
                with watching(progress) as watch:
                    run_jobs(jobs, on, workers=workers, watch=watch, verify=True)
    return Runs([_read(job, modules) for job in jobs], Path(out))


def planned(source: Source, given: Mapping[str, Any]) -> dict[str, Experiment]:
    """The runs of a comparison by the names of their folders.

    Args:
        source: What `compare` takes.
        given: Changes, as `experiment.asked` gives them.
    """
    if "method" not in given and "method" not in tree_of(source):
        given = {**given, "method": list(DEFAULT_METHODS)}
    found: dict[str, Experiment] = {}
    seen: list[object] = []
    for one, settings in config.points(source, given):
        words = [f"{key}={_word(value, seen)}" for key, value in settings.items()]
        own = "method" in one.own_parts()
        for method in [one.method] if own else expand([one.method], one.model.widths):
            name = run_name([method, *words, f"seed{one.seed}"])
            found.setdefault(name, one if own else one.model_copy(update={"method": method}))
    for one in found.values():
        check_trackers(one.track)
    return found


def _word(value: Any, seen: list[object]) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    if isinstance(value, str | int | float):
        return str(value)
    if not any(value is one for one in seen):
        seen.append(value)
    return f"{type(value).__name__}{[value is one for one in seen].index(True)}"


def build_missing(group: Path, runs: Mapping[str, Experiment]) -> dict[str, Simulation]:
    """The runs that have no folder in the group, built before anything is written.

    So what would fail in the first round of any run does so before the first round of all.
    """
    return {
        name: simulation_of(_with_own_network(one))
        for name, one in runs.items()
        if not (group / name / EXPERIMENT).exists()
    }


def begin(group: Path, built: Mapping[str, Simulation]) -> None:
    """Write the folders of runs that were built."""
    for name, simulation in built.items():
        RunFolder.create(group / name, simulation.experiment, simulation.setting.provenance())


def carry_out(
    jobs: Sequence[Job],
    built: dict[str, Simulation],
    watchers: Callable[[int], Sequence[Callback]],
) -> None:
    """Bring runs to their end, one after the other; those of `built` are used up.

    Args:
        jobs: The runs.
        built: Those that were built already, by name.
        watchers: Gives the callbacks for the run of a number.
    """
    for number, job in enumerate(jobs):
        parts = _with_own_network(job.experiment).own_parts()
        complete(job, watchers(number), simulation=built.pop(job.name, None), parts=parts)


def _with_own_network(experiment: Experiment) -> Experiment:
    """An experiment with its own copy of a network object: every run starts from what was given."""
    network = experiment.own_parts().get("network")
    if network is None:
        return experiment
    return experiment.change(model={"name": copy.deepcopy(network)})


def _carried_out(
    simulation: Simulation, folder: RunFolder | None, callbacks: Sequence[Callback]
) -> Run:
    lines = run_simulation(simulation, folder, callbacks)
    kind, dataset = simulation.experiment.data.normalise, simulation.setting.dataset
    trained = (
        simulation.global_model,
        simulation.trained_network(),
        lambda: dataset.normalisation(kind),
    )
    path = folder.path if folder else None
    return Run(simulation.experiment, lines, path, simulation.setting.provenance(), lambda: trained)


def _read(job: Job, modules: list[str]) -> Run:
    parts = job.experiment.own_parts()
    [record] = find([job.folder])
    return _loaded(record, parts.get("dataset"), parts.get("network"), modules)


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
    """Resume the run in a folder.

    Args:
        path: The run folder.
        rounds: Continue up to this number, also after the run's end; one that ended early stays
            ended, as one of that number would have.
        dataset: Your own dataset must be given again, as a folder cannot store it; likewise
            `network`, `channel` and `method`.
        network: See `dataset`.
        channel: See `dataset`.
        method: See `dataset`.
        engine: Chooses the arithmetic; in a Flower ServerApp, that of the devices there.
        callbacks: Who watches the run.
        progress: Show how far the run is, in a terminal or in a notebook.
        trust: Modules that may be imported because the folder names them.
    """
    objects = {"dataset": dataset, "network": network, "channel": channel, "method": method}
    parts = {kind: one for kind, one in objects.items() if one is not None}
    _check_parts(parts)
    watchers, names = _watchers(callbacks)
    if names:
        raise RequestError("a resumed run has the named callbacks it began with; give objects only")
    folder = RunFolder.open(Path(path))
    require(folder.provenance(), parts)
    experiment = folder.experiment() if rounds is None else extended(folder, rounds)
    check_trackers(experiment.track)
    job = Job(folder.path, experiment)
    with trusting(_modules(trust)), taking_turns([job], progress) as shown:
        sim = Simulation(experiment, engine=engine, **parts)
        sim.setting.check_provenance(folder.provenance())
        if rounds is not None:
            for remark in extend([folder], rounds):
                log.warning("%s", remark)
        return _carried_out(sim, folder, [*watchers, *shown(0)])


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

    Args:
        path: The run folder, or a folder of such.
        dataset: Your own, if the run was made with one.
        network: Likewise.
        trust: Modules that may be imported because the folder names them.
    """
    _check_parts({"dataset": dataset, "network": network})
    at, modules = Path(path), _modules(trust)
    runs = [_loaded(record, dataset, network, modules) for record in find([at])]
    return runs[0] if runs[0].folder == at else Runs(runs, at)


def _loaded(
    record: RunRecord, dataset: Dataset | None, network: nn.Module | None, modules: list[str]
) -> Run:
    experiment = record.experiment

    @cache
    def data() -> Dataset:
        return dataset or load_section(experiment.data)

    def trained() -> Trained:
        checkpoint = RunFolder.open(record.path).checkpoint()
        if checkpoint is None:
            raise RequestError(f"{record.path} has no checkpoint yet, so there is no network")
        parameters = checkpoint.tensors["global"]
        with trusting(modules):
            made = copy.deepcopy(network)
            if made is None:
                made = network_of(experiment, data().train.images.shape[-1], data().classes)
        try:
            load_flat(made, parameters)
        except ValueError as error:
            raise RequestError(f"{record.path} was made with another network: {error}") from None
        return parameters, made, lambda: data().normalisation(experiment.data.normalise)

    return Run(experiment, record.lines, record.path, record.provenance, trained)


#: What an object of one's own must have.
_PARTS = {
    "channel": ("needs_payload", "start", "links", "receive", "probabilities"),
    "method": ("name", "evaluates", "assign", "start", "merge"),
}


def _check_parts(parts: Mapping[str, object]) -> None:
    """Refuse objects that are not what they are given as, before they fail in the middle."""
    for kind, part in parts.items():
        if part is None:
            continue
        if isinstance(part, type):
            why = f"the class {part.__name__}; call it to make an object"
        elif kind == "dataset" and not isinstance(part, Dataset):
            maker = "from_arrays(train_images, train_labels, test_images, test_labels)"
            if hasattr(part, "__getitem__"):
                maker = "from_torch(train, test)"
            why = f"of type {_kind(part)}; make a dataset with slimfl.Dataset.{maker}"
        elif kind == "network" and not isinstance(part, nn.Module):
            why = f"of type {_kind(part)}; give a torch network of slimmable layers"
        elif lacking := [name for name in _PARTS.get(kind, ()) if not hasattr(part, name)]:
            why = f"of type {_kind(part)}, without {', '.join(lacking)}"
        else:
            continue
        raise RequestError(f"the {kind} must be a name or an object, and this is {why}")


def _watchers(callbacks: Watchers) -> tuple[list[Callback], list[str | dict[str, Any]]]:
    """The objects among the callbacks, and the names."""
    if isinstance(callbacks, str | dict | Callback) or not isinstance(callbacks, Sequence):
        raise RequestError("callbacks= takes a list of slimfl.Callback objects or names")
    objects: list[Callback] = []
    names: list[str | dict[str, Any]] = []
    for each in callbacks:
        if isinstance(each, Callback):
            check_hooks(each)
            objects.append(each)
        elif isinstance(each, str | dict):
            names.append(each)
        else:
            raise RequestError(
                f"callbacks= takes slimfl.Callback objects or names, and one is of type "
                f"{_kind(each)}"
            )
    return objects, names


def _kind(given: object) -> str:
    module = type(given).__module__.partition(".")[0]
    name = type(given).__name__
    return name if module == "builtins" else f"{module} {name}"


def _modules(trust: Iterable[str]) -> list[str]:
    return [trust] if isinstance(trust, str) else list(trust)
