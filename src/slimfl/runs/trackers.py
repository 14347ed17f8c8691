"""TensorBoard, MLflow and Weights & Biases as callbacks; each is an optional extra.

A run folder is one run in a tracker, however often it is killed and resumed. Every round is logged
once: rounds that the tracker has are skipped, those that it lacks are added on resume.
"""

import json
import os
import re
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from slimfl.errors import RequestError
from slimfl.experiment import Experiment
from slimfl.experiment.identity import round_identity
from slimfl.experiment.sections.section import Section
from slimfl.extras import require
from slimfl.files import read_regular_text, write_atomically
from slimfl.nn import Vector
from slimfl.runs.callbacks import Callback
from slimfl.runs.storage.record import RoundRecord
from slimfl.runs.storage.run_folder import RunFolder

#: The ids of a folder's runs in trackers that give one.
IDS = "trackers.json"

#: How a run ended: all rounds are done, an error, or somebody stopped it.
Ending = Literal["finished", "failed", "stopped"]


def scalars(line: RoundRecord) -> Iterator[tuple[str, float]]:
    """The numbers of a round that trackers plot."""
    for group in ("accuracy", "loss", "training_loss"):
        for width, value in getattr(line, group).items():
            if value is not None:
                yield f"{group}/{width}", value
    for segment, count in enumerate(line.delivered, 1):
        yield f"delivered/segment{segment}", count
    for group in ("bits_sent", "bits_decoded", "bits_dropped"):
        for segment, count in enumerate(getattr(line, group), 1):
            yield f"{group}/segment{segment}", count
    for key in (
        "learning_rate", "airtime_s", "duration_s", "clock_s",
        "energy_j", "cut_off_energy_j", "compute_energy_j",
    ):  # fmt: skip
        value = getattr(line, key)
        if value is not None:
            yield key, value
    if line.privacy is not None and line.privacy.epsilon is not None:
        yield "privacy/epsilon", line.privacy.epsilon


def parameters(experiment: Experiment) -> dict[str, Any]:
    """Every key of an experiment that has a value, with dots: `data.alpha`."""
    flat: dict[str, Any] = {}
    for key, value in experiment.model_dump(mode="json", exclude_none=True).items():
        if isinstance(getattr(experiment, key), Section):
            flat |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            flat[key] = value
    return flat


def seed_group(experiment: Experiment) -> str:
    """The same name for runs that differ only in the seed."""
    digest = round_identity(experiment.model_copy(update={"seed": 0}))[:8]
    return f"{experiment.method[-80:]}-{experiment.radio.channel}-{digest}"


class Tracker(Callback):
    """What all trackers do; those below open, log and close in their own way."""

    #: The id of the run, which the folder keeps; None before it has one.
    id: str | None = None

    def __init__(self, name: str, folder: RunFolder) -> None:
        self.name, self.folder = name, folder
        self.id = _ids(folder.path / IDS).get(name)
        self.rounds_logged = 0
        self.ending: Ending = "finished"

    @abstractmethod
    def open(self, experiment: Experiment, rounds_done: int) -> int:
        """Begin or continue the run; returns the last round that it has, 0 if none."""

    @abstractmethod
    def log(self, round: int, values: dict[str, float]) -> None:
        """Add a round."""

    @abstractmethod
    def close(self) -> None:
        """Finish the run, marked by how it ended."""

    def keep_id(self, id: str) -> None:
        """Store the id of the run in the folder."""
        self.id = id
        path = self.folder.path / IDS
        contents = json.dumps({**_ids(path), self.name: id}).encode()
        write_atomically(path, contents)

    def on_start(self, experiment: Experiment, rounds_done: int) -> None:
        """Open the run and record the experiment."""
        self.rounds_logged = self.open(experiment, rounds_done)

    def on_resume(self, records: Sequence[RoundRecord]) -> None:
        """Add what the tracker has lost, or never had."""
        for record in records:
            self._add(record)

    def on_round(self, record: RoundRecord, model: Callable[[], Vector]) -> None:
        """Add the round's scalars."""
        self._add(record)

    def on_failure(self, error: BaseException) -> None:
        """Note how the run ends."""
        self.ending = "failed" if isinstance(error, Exception) else "stopped"

    def on_end(self) -> None:
        """Close the run."""
        self.close()

    def _add(self, record: RoundRecord) -> None:
        if record.round > self.rounds_logged:
            self.log(record.round, dict(scalars(record)))


class TensorBoard(Tracker):
    """Event files inside the run folder."""

    def open(self, experiment: Experiment, rounds_done: int) -> int:
        """Purge the rounds that are repeated."""
        from torch.utils.tensorboard import SummaryWriter

        self.path, self.experiment = self.folder.path / "tensorboard", experiment
        earlier = set(self.path.glob("*.tfevents.*")) - set(self._descriptions())
        self._describe("STATUS_RUNNING")
        self.writer = SummaryWriter(str(self.path), purge_step=rounds_done + 1)
        return rounds_done if earlier else 0

    def log(self, round: int, values: dict[str, float]) -> None:
        """Write the round to the disk, where a kill does not reach it."""
        for key, value in values.items():
            self.writer.add_scalar(key, value, round)
        self.writer.flush()

    def close(self) -> None:
        """Close the event file; its parameters get the status."""
        self.writer.close()
        done = self.ending == "finished"
        self._describe("STATUS_SUCCESS" if done else "STATUS_FAILURE")

    def _descriptions(self) -> Iterator[Path]:
        return self.path.glob("*.tfevents.*.experiment")

    def _describe(self, status: str) -> None:
        """Write the parameters for the tab HParams; anew, as TensorBoard reads the first only."""
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
        from torch.utils.tensorboard import FileWriter

        start = plugin_data_pb2.SessionStartInfo(group_name=seed_group(self.experiment))
        for key, value in parameters(self.experiment).items():
            kind = {bool: "bool_value", int: "number_value", float: "number_value"}.get(type(value))
            setattr(start.hparams[key], kind or "string_value", value if kind else str(value))
        end = plugin_data_pb2.SessionEndInfo(status=api_pb2.Status.Value(status))
        for old in list(self._descriptions()):
            old.unlink()
        writer = FileWriter(str(self.path), filename_suffix=".experiment")
        for tag, data in (
            (metadata.SESSION_START_INFO_TAG, {"session_start_info": start}),
            (metadata.SESSION_END_INFO_TAG, {"session_end_info": end}),
        ):
            about = metadata.create_summary_metadata(plugin_data_pb2.HParamsPluginData(**data))
            writer.add_summary(Summary(value=[Summary.Value(tag=tag, metadata=about)]))
        writer.close()


class MLflow(Tracker):
    """A run in MLflow's configured tracking store."""

    def open(self, experiment: Experiment, rounds_done: int) -> int:
        """Continue the run of the folder if the store has it; begin one otherwise."""
        import mlflow

        self.mlflow = mlflow
        values = {key: str(value) for key, value in parameters(experiment).items()}
        known = self._known()
        if known is None:
            # inside the run of a user who has one
            run = mlflow.start_run(run_name=self.folder.name, nested=True)
            self.keep_id(run.info.run_id)
            mlflow.log_params(values)
            mlflow.set_tag("group", seed_group(experiment))
        else:
            mlflow.start_run(run_id=self.id, nested=True)
            # MLflow never changes a parameter, but a run may be resumed with more rounds
            for key, value in values.items():
                if known.get(key) != value:
                    mlflow.set_tag(key, value)
        mlflow.log_dict(experiment.model_dump(mode="json"), "experiment.json")
        history = mlflow.MlflowClient().get_metric_history(self.id, "energy_j")
        return max((metric.step for metric in history), default=0)

    def _known(self) -> dict[str, str] | None:
        """The parameters of the folder's run; None if the store has no such run."""
        if self.id is None:
            return None
        try:
            return dict(self.mlflow.get_run(self.id).data.params)
        except self.mlflow.MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None

    def log(self, round: int, values: dict[str, float]) -> None:
        """Log the round's scalars."""
        self.mlflow.log_metrics(values, step=round)

    def close(self) -> None:
        """End the run."""
        status = {"finished": "FINISHED", "failed": "FAILED", "stopped": "KILLED"}
        self.mlflow.end_run(status[self.ending])


class WeightsAndBiases(Tracker):
    """A run in Weights & Biases."""

    def open(self, experiment: Experiment, rounds_done: int) -> int:
        """Continue the run of the folder; the environment may name the project and the group."""
        import wandb

        if self.id is None:
            self.keep_id(uuid.uuid4().hex)
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT") or "slimfl",
            group=os.environ.get("WANDB_RUN_GROUP") or seed_group(experiment),
            name=self.folder.name,
            dir=str(self.folder.path),
            id=self.id,
            resume="allow",
            reinit="create_new",  # beside the run of a user who has one
        )
        # Weights & Biases asks for names without dots
        config = {key.replace(".", "__"): value for key, value in parameters(experiment).items()}
        self.run.config.update(config, allow_val_change=True)
        # the next step; 0 offline, where every file gets the whole history
        return int(self.run.step) - 1

    def log(self, round: int, values: dict[str, float]) -> None:
        """Log the round's scalars."""
        self.run.log(values, step=round)

    def close(self) -> None:
        """Finish the run; a status other than 0 marks it as failed."""
        self.run.finish(exit_code={"finished": 0, "failed": 1, "stopped": 255}[self.ending])


TRACKERS: dict[str, type[Tracker]] = {
    "tensorboard": TensorBoard,
    "mlflow": MLflow,
    "wandb": WeightsAndBiases,
}


def check_trackers(names: tuple[str, ...]) -> None:
    """Refuse trackers that are not installed, before anything is written."""
    for name in names:
        require(name, name)


def trackers_of(experiment: Experiment, folder: RunFolder | None) -> list[Callback]:
    """The callbacks for a run in that folder; a run without one is not tracked."""
    if folder is None:
        return []
    return [TRACKERS[name](name, folder) for name in dict.fromkeys(experiment.track)]


def _ids(path: Path) -> dict[str, str]:
    """The ids of a folder's runs by the tracker's name."""
    try:
        ids = json.loads(read_regular_text(path))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        ids = None
    if not isinstance(ids, dict) or not all(
        # it becomes the name of a file
        isinstance(id, str) and re.fullmatch(r"[0-9A-Za-z_-]{1,64}", id)
        for id in ids.values()
    ):
        raise RequestError(
            f"{path} is damaged: it must have one id per tracker; remove it, and trackers begin "
            "new runs"
        )
    return ids
