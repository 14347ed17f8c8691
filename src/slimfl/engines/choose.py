"""Which engine runs an experiment, and why."""

from dataclasses import dataclass

from torch import nn

from slimfl.engines.base import Engine, Workload
from slimfl.engines.native_engine import NativeEngine, why_not_native
from slimfl.engines.torch_engine import TorchEngine
from slimfl.errors import RequestError
from slimfl.nn import ULMobileNet


@dataclass(frozen=True)
class Choice:
    """An engine and the reason for it, in one line."""

    engine: Engine
    reason: str


def choose(workload: Workload, network: nn.Module) -> Choice:
    """The engine that the experiment asks for; `auto` takes the fastest that can run it."""
    wanted = workload.experiment.engine
    obstacle = why_not_native(network)
    if wanted == "native" and obstacle is not None:
        raise RequestError(f"the native engine cannot run this: {obstacle}; use --engine torch")
    if wanted == "torch":
        return _torch(workload, network, "as asked")
    if obstacle is not None:
        return _torch(workload, network, f"not the native one: {obstacle}")
    assert isinstance(network, ULMobileNet)
    engine = NativeEngine(workload, network)
    where = f"({engine.network.simd}) on {engine.threads} cores"
    return Choice(engine, f"native engine {where}: it is compiled, and the model is UL-MobileNet")


def _torch(workload: Workload, network: nn.Module, why: str) -> Choice:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    engine = TorchEngine(workload, network, device)
    where = f"{engine.threads} cores" if device == "cpu" else device
    return Choice(engine, f"torch engine on {where}: {why}")
