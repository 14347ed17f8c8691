"""`slimfl run` and `slimfl resume`."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slimfl.cli.interrupts import resumed_by
from slimfl.cli.output import DataDir, Json, On, remark, show, show_json
from slimfl.cli.settings import Set, Source, Trust, allow, with_settings

if TYPE_CHECKING:
    from slimfl.experiment import Experiment
    from slimfl.flower.superlink import SuperLink
    from slimfl.round import Simulation
    from slimfl.runs.sweeps import Job

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

RunCommand = with_settings(
    "method", "radio.channel", "data.alpha", "rounds", "federation.devices", "engine", "seed",
    "data.dir", "data.dataset", "data.partition", "federation.participation", "model.widths",
    "radio.noise_dbm", "radio.split", "training.algorithm", "training.batch_size",
    "training.epochs", "training.learning_rate", "training.steps",
    method="slimfl,vanilla-all", data_dir="search, then download",
)  # fmt: skip


def run(
    experiment: Source = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the runs and the report.",
            show_default="runs/TIME-CHANNEL-alphaALPHA",
        ),
    ] = None,
    superlink: SuperLinkOption = None,
    root_certificates: Certificates = None,
    set_: Set = None,
    trust: Trust = None,
    on: On = None,
    json: Json = False,
) -> None:
    """Train one or more methods, compare them and write a report.

    By default, compares SlimFL with Vanilla FL over the poor channel. Several values of a key,
    separated by commas, are one run each: --seed 0,1 --set data.alpha=0.1,1. The same command
    again goes on where it stopped.
    """
    from slimfl import experiment as config

    given = config.asked(set_ or (), {})
    if superlink:
        given.setdefault("engine", "flower")
    if given.get("data.dir"):
        given["data.dir"] = Path(given["data.dir"]).absolute()
    allow(trust, config.typed_names(given))
    config.points(experiment, given)  # before torch is imported: a mistyped key is answered at once

    from slimfl.runs import api
    from slimfl.runs.sweeps import Job
    from slimfl.runs.sweeps.group import new_group

    planned = api.planned(experiment, given)
    if on:  # one core per run
        planned = {
            name: one.model_copy(update={"threads": one.threads or 1})
            for name, one in planned.items()
        }
    link = _superlink(superlink, root_certificates, [*planned.values()])
    _check_place(on, [*planned.values()])
    group = out or _default_folder(next(iter(planned.values())))
    if link:
        link.nodes()  # fails early if it does not answer
    built = api.build_missing(group, planned)
    with new_group(group):
        api.begin(group, built)
        reasons = dict.fromkeys(one.setting.engine_reason for one in built.values())
        if link:
            reasons = dict.fromkeys([f"flower engine with the SuperLink at {link.address}"])
        for reason in reasons:
            remark(reason)
        jobs = [Job(group / name, one) for name, one in planned.items()]
        with resumed_by(_resume_command(group, superlink, root_certificates)):
            _carry_out(jobs, built, on, link)
            _close(group, [job.folder for job in jobs], json)


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
    from slimfl.results.records import load
    from slimfl.runs.extending import extend
    from slimfl.runs.sweeps import Job
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
        _check_place(on, experiments)
        if rounds is not None:
            for said in extend(folders, rounds):
                remark(said)
        moved = {"data": {"dir": data_dir.absolute()}} if data_dir else {}
        jobs = [Job(one.path, one.experiment().change(**moved)) for one in folders]
        _carry_out(jobs, {}, on, link)
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


def _check_place(on: str | None, experiments: list["Experiment"]) -> None:
    from slimfl.errors import RequestError
    from slimfl.runs.sweeps import check_place

    if on is None:
        return
    check_place(on)
    if any(one.engine == "flower" for one in experiments):
        raise RequestError(
            "--on distributes whole runs and the flower engine distributes devices; give --on or "
            "--engine flower, not both"
        )


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
    jobs: "list[Job]",
    built: "dict[str, Simulation]",
    on: str | None,
    superlink: "SuperLink | None",
) -> None:
    from slimfl.runs import api
    from slimfl.runs.progress import taking_turns, watching
    from slimfl.runs.sweeps import is_complete, run_jobs

    if on:
        built.clear()
        with watching() as watch:
            run_jobs(jobs, on, watch=watch, verify=True)
        return
    with taking_turns(jobs) as shown:
        if superlink is None:
            api.carry_out(jobs, built, shown)
            return
        from slimfl.flower.deployed import carry_out
        from slimfl.round import RunFolder

        for number, job in enumerate(jobs):
            if not is_complete(job, verify=True):
                carry_out(RunFolder.open(job.folder), superlink, shown(number))


def _close(group: Path, runs: list[Path], json: bool) -> None:
    from slimfl.report.pages.run_report import write_report
    from slimfl.report.tables import clock_tables, closing_table, devices_tables
    from slimfl.results.records import find
    from slimfl.results.summary import summaries

    records = find(runs)
    report = write_report(records, group / "report.html")
    if json:
        show_json({"runs": summaries(records), "report": report})
        return
    show(closing_table(records), *clock_tables(records), *devices_tables(records))
    remark(f"report: {report}")
