"""The work that every runner of the bench does: one round of local training on all devices."""

from dataclasses import dataclass
from typing import Any

from slimfl.experiment import Experiment, build

#: What is trained: superposition training of both widths, or federated averaging at full width. Any
#: other kind is a method's name.
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
    weak_share: float = 0.0
    """Share of the devices that hold the narrowest width at most."""

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
                "method": METHODS.get(self.kind, self.kind),
                "engine": engine,
                "rounds": 1_000_000,
                "threads": threads,
                "model": self._model(),
                "population": {"classes": self._classes()},
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

    def _model(self) -> dict[str, Any]:
        """UL-MobileNet, or as many narrow ones side by side as there are widths."""
        if self.kind == "split-mix":
            options = {"bases": len(self.widths)}
            return {"name": "split-mix", "options": options, "widths": self.widths}
        return {"widths": self.widths}

    def _classes(self) -> list[dict[str, Any]]:
        """Weak devices and others; none where all are alike."""
        if not self.weak_share:
            return []
        return [
            {"name": "weak", "share": self.weak_share, "max_width": self.widths[0]},
            {"name": "able", "share": 1 - self.weak_share},
        ]
