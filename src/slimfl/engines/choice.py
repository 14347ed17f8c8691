"""Which engine runs an experiment, and why."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from slimfl.engines.base import Engine, Workload
from slimfl.engines.native_engine import NativeEngine, why_not_native
from slimfl.engines.torch_engine import TorchEngine
from slimfl.errors import RequestError
from slimfl.extras import why_not_flower
from slimfl.nn import ULMobileNet

if TYPE_CHECKING:
    from flwr.serverapp import Grid


@dataclass(frozen=True)
class Choice:
    """An engine and the reason for it, in one line."""

    engine: Engine
    reason: str
    resolved: dict[str, Any]
    """Settings that the choice fixes in the experiment, so that a resumed run computes the same."""


#: Chooses the engine of a workload and a network.
ChooseEngine = Callable[[Workload, nn.Module], Choice]


def choose(workload: Workload, network: nn.Module, grid: "Grid | None" = None) -> Choice:
    """The engine that the experiment asks for; `auto` is the fastest that can run it.

    Args:
        workload: The experiment and the data.
        network: Its initialised network.
        grid: For the flower engine: the message service behind which the devices are; without one,
            they are simulated.
    """
    if workload.experiment.engine == "flower":
        chosen = _flower(workload, network, grid)
    else:
        chosen = _local(workload, network)
    engine = chosen.engine
    settled = {"engine": engine.name, "threads": engine.threads, "device": "cpu"}
    settled |= chosen.resolved
    return Choice(engine, chosen.reason, settled)


def _flower(workload: Workload, network: nn.Module, grid: "Grid | None") -> Choice:
    obstacle = why_not_flower()
    if obstacle is not None:
        raise RequestError(f"the flower engine cannot run this: {obstacle}")
    from slimfl.flower.connect import connector
    from slimfl.flower.engine import FlowerEngine

    experiment = workload.experiment
    section = experiment.flower
    local = _local(
        Workload(
            experiment.model_copy(update={"engine": section.device_engine}),
            workload.dataset,
            workload.partition,
        ),
        network,
    )
    # all devices use the engine that this machine would use
    settled = section.model_copy(update={"device_engine": local.engine.name})
    experiment = experiment.model_copy(update={"flower": settled})
    if grid is not None:  # other machines must not learn where this one has its data
        elsewhere = experiment.data.model_copy(update={"dir": None})
        experiment = experiment.model_copy(update={"data": elsewhere})
    engine = FlowerEngine(
        Workload(experiment, workload.dataset, workload.partition),
        local.engine,
        connector(experiment, local.engine.threads, grid),
    )
    where = "a deployment" if grid else f"a simulation on Ray with {engine.threads} cores"
    reason = f"flower engine, {where}; on a device: {local.engine.name} engine"
    return Choice(engine, reason, {**local.resolved, "flower": settled})


def _local(workload: Workload, network: nn.Module) -> Choice:
    wanted, device = workload.experiment.engine, workload.experiment.device
    obstacle = why_not_native(network)
    if device is not None and device != "cpu":
        check_gpu(device)
        obstacle = f"it computes on cores, not on {device}"
    if wanted == "native" and obstacle is not None:
        raise RequestError(f"the native engine cannot run this: {obstacle}; use --engine torch")
    if wanted == "torch":
        return _torch(workload, network, "as asked")
    if obstacle is not None:
        return _torch(workload, network, f"not the native one: {obstacle}")
    assert isinstance(network, ULMobileNet)
    native = NativeEngine(workload, network)
    where = f"({native.network.simd}) on {native.threads} cores"
    reason = f"native engine {where}: it is compiled, and the model is UL-MobileNet"
    return Choice(native, reason, {})


def _torch(workload: Workload, network: nn.Module, why: str) -> Choice:
    gpu = "cuda" if torch.cuda.is_available() else "cpu"
    device = workload.experiment.device or gpu
    engine = TorchEngine(workload, network, device)
    where = f"{engine.threads} cores" if device == "cpu" else device
    return Choice(engine, f"torch engine on {where}: {why}", {"device": device})


def check_gpu(device: str) -> None:
    """Refuse a GPU that does not exist."""
    if not torch.cuda.is_available():
        build = torch.version.cuda
        reason = "sees no GPU" if build else f"{torch.__version__} is a build without CUDA"
        raise RequestError(
            f"device {device!r} is not available: this PyTorch {reason}; omit device, or install a "
            "build for your GPU"
        )
    index = int(device.partition(":")[2] or 0)
    if index >= torch.cuda.device_count():
        raise RequestError(
            f"device {device!r} is not available: this machine has {torch.cuda.device_count()}, "
            "numbered from cuda:0"
        )
