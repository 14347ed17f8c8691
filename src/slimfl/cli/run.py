"""`slimfl run` and `slimfl resume`."""

import math
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from click import Context
from typer.core import TyperOption

from slimfl.cli.interrupts import resumed_by
from slimfl.cli.output import DataDir, Json, On, aside, show, show_json
from slimfl.cli.plain_help import PlainCommand
from slimfl.cli.trusting import Trust, allow

if TYPE_CHECKING:
    from slimfl.experiment import Experiment
    from slimfl.flower.superlink import SuperLink
    from slimfl.round import RunFolder

SuperLinkOption = Annotated[
    str | None,
    typer.Option(
        help="Engine flower: use the devices of this SuperLink on this machine, given as HOST:PORT "
        "or as the folder of a kit. Without it, devices are simulated.",
        show_default=False,
    ),
]
Certificates = Annotated[
    Path | None,
    typer.Option(
        help="Root certificate that verifies the SuperLink at HOST:PORT.", show_default=False
    ),
]

#: Maximum number of points of a grid, each of which is at least one run.
MOST_POINTS = 10_000

#: SlimFL and Vanilla FL at every width: the comparison of the paper.
DEFAULT_METHODS = "slimfl,vanilla-all"


class RunCommand(PlainCommand):
    """`slimfl run`, which has every short name as an option."""

    def get_params(self, ctx: Context) -> list[Any]:
        """The options of the function below, and those that only stand for `--set KEY=VALUE`."""
        from slimfl.experiment.short_names import SHORT_NAMES

        *params, help_ = super().get_params(ctx)
        there = {one.name for one in params}
        short = (name for name in SHORT_NAMES if name not in there)
        return [*params, *map(_short_option, short), help_]

    def invoke(self, ctx: Context) -> Any:
        """Give the function what the short names say as `--set`."""
        short = ctx.params.keys() - {one.name for one in self.params}
        given = [(name, ctx.params.pop(name)) for name in sorted(short)]
        told = [f"{name}={value}" for name, value in given if value is not None]
        ctx.params["set_"] = [*(ctx.params["set_"] or ()), *told]
        return super().invoke(ctx)


def _short_option(name: str) -> TyperOption:
    from slimfl.experiment.short_names import SHORT_NAMES

    return TyperOption(
        param_decls=[name, f"--{name.replace('_', '-')}"],
        type=str,
        help=f"Short for --set {SHORT_NAMES[name]}=TEXT.",
    )


def run(
    experiment: Annotated[
        Path | None,
        typer.Argument(
            help="TOML file; its values replace the defaults below.", show_default=False
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="Methods, separated by commas: slimfl, vanilla-0.5x, vanilla-1.0x (any width of "
            "the model), vanilla-all (one run of Vanilla FL per width, the paper's vanilla-1.5x), "
            "a rival such as heterofl, or your own, package.module:Name.",
            show_default="slimfl,vanilla-all",
        ),
    ] = None,
    channel: Annotated[str | None, typer.Option(help="good or poor.", show_default="poor")] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            help="Dirichlet concentration; with smaller values, devices differ more.",
            show_default="1",
        ),
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="Number of rounds.", show_default="30")] = None,
    devices: Annotated[
        int | None, typer.Option(help="Number of devices.", show_default="10")
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="auto, torch, native or flower.", show_default="auto")
    ] = None,
    seed: Annotated[
        str | None, typer.Option(help="Seeds, separated by commas.", show_default="0")
    ] = None,
    data_dir: DataDir = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the runs and the report.",
            show_default="runs/TIME-CHANNEL-alphaALPHA",
        ),
    ] = None,
    superlink: SuperLinkOption = None,
    root_certificates: Certificates = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Set any other key, e.g. radio.noise_dbm=-40 (`slimfl keys` lists them); may be "
            "repeated.",
        ),
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(help="Try several values of a key, e.g. data.alpha=0.1,1; may be repeated."),
    ] = None,
    trust: Trust = None,
    on: On = None,
    json: Json = False,
) -> None:
    """Train one or more methods, compare them and write a report.

    By default, compares SlimFL with Vanilla FL over the poor channel.
    """
    from slimfl import experiment as config
    from slimfl.errors import RequestError

    if method is not None and not all(part.strip() for part in method.split(",")):
        raise RequestError(
            f"--method takes names separated by commas, such as {DEFAULT_METHODS}, not {method!r}"
        )
    asked, points = method, _points(grid or [])
    changed = config.asked([*(set_ or ()), *points[0]], {})
    in_file = experiment is not None and "method" in config.read_toml(experiment)
    if method is None and "method" not in changed and not in_file:
        asked = DEFAULT_METHODS
    if superlink and engine is None and "engine" not in changed:
        engine = "flower"
    try:
        seeds = None if seed is None else [int(part) for part in seed.split(",")]
    except ValueError:
        shown = repr(seed if seed is None or len(seed) <= 60 else f"{seed[:57]}...")
        raise RequestError(f"--seed takes whole numbers separated by commas, not {shown}") from None
    loaded: list[tuple[tuple[str, ...], Experiment]] = []
    allow(trust)
    for point in points:
        allow((), config.typed_names([*(set_ or ()), *point]))
        experiments = config.load(
            experiment,
            [*(set_ or ()), *point],
            method=asked.split(",") if asked else None,
            radio__channel=channel,
            data__alpha=alpha,
            rounds=rounds,
            federation__devices=devices,
            engine=engine,
            seed=seeds,
            data__dir=data_dir.absolute() if data_dir else None,
        )
        if on:  # one core per run
            experiments = [
                one.model_copy(update={"threads": one.threads or 1}) for one in experiments
            ]
        loaded += [(point, one) for one in experiments]

    # only now, because these import torch: a mistyped key is answered at once
    from slimfl.methods import expand
    from slimfl.runs.sweeps.group import check_free, make_planned, new_group, write_plan
    from slimfl.runs.sweeps.names import run_name
    from slimfl.runs.trackers import check_trackers

    planned: dict[str, Experiment] = {}
    for point, one in loaded:
        for name in expand([one.method], one.model.widths):
            words = [name, *point, f"seed{one.seed}"]
            planned.setdefault(run_name(words), one.model_copy(update={"method": name}))
    for one in planned.values():
        check_trackers(one.track)
    link = _superlink(superlink, root_certificates, list(planned.values()))
    if on:
        _check_place(on, list(planned.values()))
    group = out or _default_folder(experiments[0])
    check_free(group, planned)

    if link:
        link.nodes()  # fails early if it does not answer
    # check and create everything before the first round, so that resume knows the whole plan
    texts, engines = _checked(planned)
    if link:
        engines = [f"flower engine with the SuperLink at {link.address}"]
    with new_group(group):
        write_plan(group, texts)
        with resumed_by(_resume_command(group, superlink, root_certificates)):
            folders = make_planned(group)
            for reason in engines:
                aside().print(reason, highlight=False)
            if on:
                _side_by_side(folders, on)
            else:
                _carry_out(folders, superlink=link)
            _close(group, [folder.path for folder in folders], json)


def resume(
    run: Annotated[Path, typer.Argument(help="A run folder, or a folder of runs.")],
    rounds: Annotated[
        int | None,
        typer.Option(
            help="Continue up to this number of rounds, also after a finished run.",
            show_default="as many as the run was started with",
        ),
    ] = None,
    data_dir: DataDir = None,
    superlink: SuperLinkOption = None,
    root_certificates: Certificates = None,
    trust: Trust = None,
    on: On = None,
    json: Json = False,
) -> None:
    """Continue runs that are not finished, or lengthen runs.

    The numbers are the same as those of a run that was never stopped.
    """
    from slimfl.errors import RequestError
    from slimfl.results import load
    from slimfl.runs.extending import extend
    from slimfl.runs.sweeps.group import existing_group
    from slimfl.runs.trackers import check_trackers

    allow(trust)
    command = _resume_command(run, superlink, root_certificates, data_dir, rounds)
    with resumed_by(command), existing_group(run) as folders:
        for folder in folders:
            if folder.intact_metrics().damage is None:  # otherwise rounds are run again
                load(folder.path)  # refuse now what could not be reported at the end
        experiments = [folder.experiment() for folder in folders]
        for one in experiments:
            check_trackers(one.track)
        link = _superlink(superlink, root_certificates, experiments)
        if link and data_dir:
            raise RequestError(
                "--data-dir has no effect on the SuperLink; set SLIMFL_DATA on its machine"
            )
        if on:
            _check_place(on, experiments)
        if rounds is not None:
            for remark in extend(folders, rounds):
                aside().print(remark, highlight=False, soft_wrap=True)
        if on:
            _side_by_side(folders, on, data_dir)
        else:
            _carry_out(folders, data_dir, link)
        _close(run, [run], json)


def _resume_command(
    group: Path,
    superlink: str | None,
    certificates: Path | None,
    data_dir: Path | None = None,
    rounds: int | None = None,
) -> str:
    """The command that resumes a folder in the same way."""
    import shlex

    from slimfl.experiment.naming import trusted

    options = {
        "--superlink": superlink,
        "--root-certificates": certificates,
        "--data-dir": data_dir,
        "--rounds": rounds,  # a kill may come before all runs have their new number
    }
    given = [word for key, value in options.items() if value for word in (key, str(value))]
    given += [word for module in trusted() for word in ("--trust", module)]
    return shlex.join(["slimfl", "resume", str(group), *given])


def _checked(planned: dict[str, "Experiment"]) -> tuple[dict[str, str], list[str]]:
    """The experiment.toml of every run, and the chosen engines with reasons.

    Preparing every run reveals now what would fail in its first round.
    """
    from slimfl import experiment as config
    from slimfl.round import Simulation
    from slimfl.runs.sweeps import shared_dataset

    texts, engines = {}, []
    for name, one in planned.items():
        sim = Simulation(one, dataset=shared_dataset(one))
        texts[name] = config.dump(sim.experiment, **sim.setting.provenance())
        engines.append(sim.setting.engine_reason)
    return texts, list(dict.fromkeys(engines))


def _points(grid: list[str]) -> list[tuple[str, ...]]:
    """The points of a grid, each as a tuple of overrides."""
    import itertools

    from slimfl.errors import RequestError

    axes = []
    for text in grid:
        key, equals, values = text.partition("=")
        if not equals or not values.strip(" ,"):
            raise RequestError(
                f"--grid takes key=value,value, for example data.alpha=0.1,1, not {text!r}"
            )
        axes.append([f"{key.strip()}={value.strip()}" for value in _values(values)])
    if math.prod(map(len, axes)) > MOST_POINTS:
        raise RequestError(f"--grid has more than {MOST_POINTS:,} points; give fewer values")
    return list(itertools.product(*axes))


def _values(text: str) -> list[str]:
    """Values separated by commas; a list in brackets is one value."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _check_place(on: str, experiments: list["Experiment"]) -> None:
    from slimfl.errors import RequestError
    from slimfl.runs.sweeps import check_place

    check_place(on)
    if any(one.engine == "flower" for one in experiments):
        raise RequestError(
            "--on distributes whole runs and the flower engine distributes devices; give --on or "
            "--engine flower, not both"
        )


def _side_by_side(folders: list["RunFolder"], on: str, data_dir: Path | None = None) -> None:
    from slimfl.cli.jobs_bar import jobs_bar
    from slimfl.runs.sweeps import Job, run_jobs

    jobs = [Job(folder.path, _found_in(folder.experiment(), data_dir)) for folder in folders]
    with jobs_bar(aside()) as watch:
        run_jobs(jobs, on, watch=watch, verify=True)


def _found_in(experiment: "Experiment", data_dir: Path | None) -> "Experiment":
    """An experiment whose data has moved to another folder."""
    if data_dir is None:
        return experiment
    moved = experiment.data.model_copy(update={"dir": data_dir.absolute()})
    return experiment.model_copy(update={"data": moved})


def _default_folder(experiment: "Experiment") -> Path:
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    name = f"{stamp}-{experiment.radio.channel}-alpha{experiment.data.alpha:g}"
    return Path("runs") / name


def _superlink(
    where: str | None, certificates: Path | None, experiments: list["Experiment"]
) -> "SuperLink | None":
    """The SuperLink that the options name, if the experiments are for one."""
    from slimfl.errors import RequestError
    from slimfl.extras import why_not_flower

    flower = [one for one in experiments if one.engine == "flower"]
    if flower and why_not_flower() is not None:
        raise RequestError(f"the flower engine cannot run this: {why_not_flower()}")
    if where is None:
        for one in flower:
            from slimfl.flower.connect import check_simulated

            check_simulated(one)
        return None
    if len(flower) < len(experiments):
        raise RequestError("--superlink needs the flower engine; add --engine flower")
    from slimfl.flower.kit import Kit
    from slimfl.flower.superlink import SuperLink

    if not Path(where).is_dir():
        return SuperLink(where, certificates)
    kit = Kit.open(Path(where))
    for one in flower:
        if one.federation.devices != kit.devices:
            raise RequestError(
                f"the kit {where} has {kit.devices} devices and the experiment "
                f"{one.federation.devices}; give --devices {kit.devices}"
            )
    return kit.superlink


def _carry_out(
    folders: list["RunFolder"],
    data_dir: Path | None = None,
    superlink: "SuperLink | None" = None,
) -> None:
    from slimfl.cli.progress import AllRuns, ProgressCallback, progress_bar
    from slimfl.round import Simulation, completed
    from slimfl.round import run as run_simulation
    from slimfl.runs.sweeps import Job, shared_dataset

    jobs = [Job(folder.path, _found_in(folder.experiment(), data_dir)) for folder in folders]
    with progress_bar(aside()) as progress:
        runs = AllRuns(progress, jobs)
        for folder, job in zip(folders, jobs, strict=True):
            experiment = job.experiment
            if completed(folder, experiment, verify=True):
                runs.ended(folder.name)
                continue
            callbacks = [ProgressCallback(progress, folder.name, runs)]
            if superlink is not None:
                from slimfl.flower.deployed import carry_out

                carry_out(folder, superlink, callbacks)
                continue
            sim = Simulation(experiment, dataset=shared_dataset(experiment))
            sim.setting.check_provenance(folder.provenance())
            run_simulation(sim, folder, callbacks)


def _close(group: Path, runs: list[Path], json: bool) -> None:
    from slimfl.report import clock_tables, closing_table, devices_tables, write_report
    from slimfl.results import find, summaries

    records = find(runs)
    report = write_report(records, group / "report.html")
    if json:
        show_json({"runs": summaries(records), "report": report})
        return
    show(closing_table(records), *clock_tables(records), *devices_tables(records))
    aside().print(f"report: {report}", highlight=False, soft_wrap=True)
