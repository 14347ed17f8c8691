"""Which engine runs an experiment, and why."""

from dataclasses import dataclass

from torch import nn

from slimfl.engines.base import Engine, Workload
from slimfl.engines.torch_engine import TorchEngine
from slimfl.errors import RequestError


@dataclass(frozen=True)
class Choice:
    """An engine and the reason for it, in one line."""

    engine: Engine
    reason: str


def choose(workload: Workload, network: nn.Module) -> Choice:
    """The engine that the experiment asks for; `auto` takes the fastest that can run it."""
    import torch

    wanted = workload.experiment.engine
    if wanted == "native":
        raise RequestError("there is no native engine in this installation; use --engine torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return Choice(
        TorchEngine(workload, network, device),
        f"torch engine on {device} with {torch.get_num_threads()} threads",
    )
