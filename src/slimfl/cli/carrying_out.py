"""What `slimfl run` and `slimfl resume` do once their request is known to make sense."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slimfl.cli.output import Reply, remark
from slimfl.errors import Interrupted, RequestError
from slimfl.experiment import Experiment
from slimfl.experiment.naming import trusted
from slimfl.extras import why_not_flower
from slimfl.report.pages.run_report import write_report
from slimfl.report.tables import console_tables
from slimfl.results.records import find, load
from slimfl.results.summary import summaries
from slimfl.round import RunFolder, Simulation
from slimfl.runs import api
from slimfl.runs.loop import extend
from slimfl.runs.progress import taking_turns, watching
from slimfl.runs.sweeps import Job, check_place, is_complete, run_jobs
from slimfl.runs.sweeps.job import existing_group, new_group
from slimfl.runs.trackers import check_trackers

if TYPE_CHECKING:
    from slimfl.flower.superlink import SuperLink


def started(
    source: Path | None,
    given: Mapping[str, Any],
    out: Path | None,
    superlink: str | None,
    certificates: Path | None,
    on: str | None,
) -> Reply:
    """Begin the runs of a request, or go on with them, and report.

    Args:
        source: A TOML file.
        given: What the request changes in it, as `experiment.asked` gives it.
        out: The folder for all runs.
        superlink: HOST:PORT or the folder of a kit, for devices elsewhere.
        certificates: Root certificate of HOST:PORT.
        on: Where runs go in parallel.
    """
    planned = api.planned(source, given)
    if on:  # one core per run
        planned = {
            name: one.model_copy(update={"threads": one.threads or 1})
            for name, one in planned.items()
        }
    link = _superlink(superlink, certificates, [*planned.values()], on)
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
        with _resumed_by(group, {"superlink": superlink, "root-certificates": certificates}):
            _carry_out(jobs, built, on, link)
            return _closed(group, [job.folder for job in jobs])


def resumed(
    path: Path,
    rounds: int | None,
    data_dir: Path | None,
    superlink: str | None,
    certificates: Path | None,
    on: str | None,
) -> Reply:
    """Bring the runs in a folder to their end and report; for most arguments see `started`.

    Args:
        path: A run folder, or a folder of runs.
        rounds: Continue up to this number.
        data_dir: Where the dataset is now.
        superlink: See `started`.
        certificates: See `started`.
        on: See `started`.
    """
    given = {
        "superlink": superlink,
        "root-certificates": certificates,
        "data-dir": data_dir,
        "rounds": rounds,  # a kill may come before all runs have their new number
    }
    with _resumed_by(path, given), existing_group(path) as folders:
        for folder in folders:
            if folder.intact_metrics().damage is None:  # otherwise rounds are run again
                load(folder.path)  # refuse now what could not be reported at the end
        experiments = [folder.experiment() for folder in folders]
        for one in experiments:
            check_trackers(one.track)
        link = _superlink(superlink, certificates, experiments, on)
        if link and data_dir:
            raise RequestError(
                "--data-dir has no effect on the SuperLink; set SLIMFL_DATA on its machine"
            )
        if rounds is not None:
            for said in extend(folders, rounds):
                remark(said)
        moved = {"data": {"dir": data_dir.absolute()}} if data_dir else {}
        jobs = [Job(one.path, one.experiment().change(**moved)) for one in folders]
        _carry_out(jobs, {}, on, link)
        return _closed(path, [path])


@contextmanager
def _resumed_by(group: Path, options: Mapping[str, Any]) -> Iterator[None]:
    """Inside the block, the message after an interrupt has the command to continue."""
    try:
        yield
    except Interrupted as interrupted:
        words = ["slimfl", "resume", str(group)]
        for name, value in options.items():
            words += [f"--{name}", str(value)] if value else []
        for module in trusted():
            words += ["--trust", module]
        interrupted.way_on = f"`{shlex.join(words)}` continues after the last complete round"
        raise


def _default_folder(experiment: Experiment) -> Path:
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    return Path("runs", f"{stamp}-{experiment.radio.channel}-alpha{experiment.data.alpha:g}")


def _superlink(
    where: str | None, certificates: Path | None, experiments: Sequence[Experiment], on: str | None
) -> "SuperLink | None":
    """The SuperLink that the options name, if the experiments are for one."""
    flower = [one for one in experiments if one.engine == "flower"]
    if flower and why_not_flower() is not None:
        raise RequestError(f"the flower engine cannot run this: {why_not_flower()}")
    if where is not None and len(flower) < len(experiments):
        raise RequestError("--superlink needs the flower engine; add --engine flower")
    if on is not None:
        check_place(on)
        if flower:
            raise RequestError(
                "--on distributes whole runs and the flower engine distributes devices; give --on "
                "or --engine flower, not both"
            )
    if not flower:
        return None
    # Flower is in an extra
    from slimfl.flower.connect import check_simulated
    from slimfl.flower.kit import Kit
    from slimfl.flower.superlink import SuperLink

    if where is None:
        for one in flower:
            check_simulated(one)
        return None
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
    jobs: Sequence[Job], built: dict[str, Simulation], on: str | None, superlink: "SuperLink | None"
) -> None:
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

        for number, job in enumerate(jobs):
            if not is_complete(job, verify=True):
                carry_out(RunFolder.open(job.folder), superlink, shown(number))


def _closed(group: Path, runs: Sequence[Path]) -> Reply:
    records = find(runs)
    report = write_report(records, group / "report.html")
    return Reply(
        {"runs": summaries(records), "report": report},
        console_tables(records),
        [f"report: {report}"],
    )
