"""TensorBoard, MLflow and Weights & Biases as callbacks; each is an optional extra."""

from collections.abc import Callable, Iterator
from pathlib import Path

from slimfl.config import Experiment
from slimfl.extras import require
from slimfl.federation.callbacks import Callback
from slimfl.federation.storage.record import RoundRecord
from slimfl.federation.storage.run_folder import RunFolder
from slimfl.nn import Vector


def scalars(line: RoundRecord) -> Iterator[tuple[str, float]]:
    """The numbers of a round that trackers plot."""
    for group in ("accuracy", "loss", "training_loss"):
        for width, value in getattr(line, group).items():
            if value is not None:
                yield f"{group}/{width}", value
    for segment, count in enumerate(line.delivered, 1):
        yield f"delivered/segment{segment}", count
    yield "energy_j", line.energy_j
    if line.learning_rate is not None:  # nobody trained
        yield "learning_rate", line.learning_rate


class TensorBoard(Callback):
    """Event files inside the run folder."""

    def __init__(self, folder: Path, name: str) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder / "tensorboard"))

    def on_round(self, line: RoundRecord, model: Callable[[], Vector]) -> None:
        """Add the round's scalars."""
        for key, value in scalars(line):
            self.writer.add_scalar(key, value, line.round)

    def on_end(self) -> None:
        """Flush the event file."""
        self.writer.close()


class MLflow(Callback):
    """A run in MLflow's configured tracking store."""

    def __init__(self, folder: Path, name: str) -> None:
        import mlflow

        self.mlflow, self.name = mlflow, name

    def on_start(self, experiment: Experiment, rounds_done: int) -> None:
        """Open the run and record the experiment."""
        self.mlflow.start_run(run_name=self.name)
        self.mlflow.log_dict(experiment.model_dump(mode="json"), "experiment.json")

    def on_round(self, line: RoundRecord, model: Callable[[], Vector]) -> None:
        """Log the round's scalars."""
        self.mlflow.log_metrics(dict(scalars(line)), step=line.round)

    def on_end(self) -> None:
        """Close the run."""
        self.mlflow.end_run()


class WeightsAndBiases(Callback):
    """A run in Weights & Biases."""

    def __init__(self, folder: Path, name: str) -> None:
        import wandb

        self.wandb, self.folder, self.name = wandb, folder, name

    def on_start(self, experiment: Experiment, rounds_done: int) -> None:
        """Open the run and record the experiment."""
        self.run = self.wandb.init(
            project="slimfl",
            name=self.name,
            dir=str(self.folder),
            config=experiment.model_dump(mode="json"),
        )

    def on_round(self, line: RoundRecord, model: Callable[[], Vector]) -> None:
        """Log the round's scalars."""
        self.run.log(dict(scalars(line)), step=line.round)

    def on_end(self) -> None:
        """Close the run."""
        self.run.finish()


TRACKERS: dict[str, type[TensorBoard | MLflow | WeightsAndBiases]] = {
    "tensorboard": TensorBoard,
    "mlflow": MLflow,
    "wandb": WeightsAndBiases,
}


def check_trackers(names: tuple[str, ...]) -> None:
    """Refuse trackers that are not installed, before anything is written."""
    for name in names:
        require(name, name)


def trackers(experiment: Experiment, folder: RunFolder | None) -> list[Callback]:
    """The callbacks for a run in that folder; a run without one is not tracked."""
    if folder is None:
        return []
    return [TRACKERS[name](folder.path, folder.name) for name in experiment.track]
