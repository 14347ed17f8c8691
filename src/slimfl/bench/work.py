"""The work that every runner of the bench does: one round of local training on all devices."""

from dataclasses import dataclass

from slimfl.config import Experiment, build

#: What is trained: superposition training of both widths, or federated averaging at full width.
METHODS = {"sustrain": "slimfl", "fedavg": "vanilla-1.0x"}


@dataclass(frozen=True)
class Work:
    """A number of devices with the same number of images each, one local epoch in batches."""

    kind: str = "sustrain"
    devices: int = 20
    images_per_device: int = 192
    batch_size: int = 64
    widths: tuple[float, ...] = (0.5, 1.0)
    cohort: int | None = None
    """Number of devices asked per round; all by default."""

    @property
    def held(self) -> int:
        """Images on all devices."""
        return self.devices * self.images_per_device

    @property
    def images(self) -> int:
        """Images trained in a round."""
        return (self.cohort or self.devices) * self.images_per_device

    def experiment(self, engine: str, threads: int | None = None) -> Experiment:
        """The work as an experiment over a perfect channel, without evaluation between rounds."""
        return build(
            {
                "method": METHODS[self.kind],
                "engine": engine,
                "rounds": 1_000_000,
                "threads": threads,
                "model": {"widths": self.widths},
                "data": {"partition": "iid", "min_samples": 1},
                "training": {"epochs": 1, "batch_size": self.batch_size},
                "radio": {"noise_dbm": -300.0, "split": "optimal"},
                "federation": {
                    "devices": self.devices,
                    "participation": (self.cohort or self.devices) / self.devices,
                    "evaluate_every": 1_000_000,
                },
            }
        )
