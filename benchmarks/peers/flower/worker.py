"""Federated averaging on Flower's simulation engine; see README.md."""

import os
from collections.abc import Iterable
from queue import SimpleQueue
from threading import Thread
from typing import Any

from peer_protocol import Peer, Work, available_cores, scratch_folder, serve

os.environ["FLWR_HOME"] = os.environ["RAY_TMPDIR"] = str(scratch_folder())
os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
os.environ["FLWR_DISABLE_UPDATE_CHECK"] = "1"
os.environ["FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION"] = "1"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import torch
from flower_app import app as client_app
from flwr.app import ArrayRecord, ConfigRecord, Context, Message
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from peer_network import make_network, norm_of

#: More rounds than the bench will ask for: the engine drives them, the bench ends the process.
ROUNDS = 1_000_000


class SteppedFedAvg(FedAvg):
    """Flower's FedAvg that waits for the bench before each round."""

    def __init__(self, devices: int) -> None:
        super().__init__(
            fraction_train=1.0,
            fraction_evaluate=0.0,
            min_train_nodes=devices,
            min_available_nodes=devices,
        )
        self.devices = devices
        self.begin: SimpleQueue[None] = SimpleQueue()
        self.ended: SimpleQueue[BaseException | None] = SimpleQueue()
        self.arrays = ArrayRecord(make_network().state_dict())

    def configure_train(self, *args: Any, **kwargs: Any) -> Iterable[Message]:
        """Messages for all devices."""
        self.begin.get()
        return super().configure_train(*args, **kwargs)

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
        """The mean of the devices' models."""
        replies = list(replies)
        failed = [reply for reply in replies if reply.has_error()]
        if failed or len(replies) != self.devices:
            raise RuntimeError(f"{len(failed)} devices failed: {[f.error for f in failed[:1]]}")
        arrays, metrics = super().aggregate_train(server_round, replies)
        self.arrays = arrays
        self.ended.put(None)
        return arrays, metrics


def prepare(work: Work) -> Peer:
    """Start one run of the simulation; it stands still between rounds."""
    torch.manual_seed(0)
    strategy = SteppedFedAvg(work.devices)
    config = ConfigRecord(
        {"images-per-device": work.images_per_device, "batch-size": work.batch_size}
    )
    server_app = ServerApp()

    @server_app.main()
    def main(grid: Grid, context: Context) -> None:
        strategy.start(
            grid=grid,
            initial_arrays=strategy.arrays,
            num_rounds=ROUNDS,
            timeout=None,
            train_config=config,
        )

    def simulate() -> None:
        try:
            run_simulation(
                server_app,
                client_app,
                num_supernodes=work.devices,
                backend_config={
                    "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
                    "init_args": {"num_cpus": available_cores(), "num_gpus": 0},
                },
            )
            strategy.ended.put(RuntimeError("the simulation ended of its own accord"))
        except BaseException as error:
            strategy.ended.put(error)

    Thread(target=simulate, daemon=True).start()

    def round_() -> None:
        strategy.begin.put(None)
        if error := strategy.ended.get():
            raise error

    return Peer(round_, lambda: norm_of(strategy.arrays.to_torch_state_dict().values()))


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve(prepare)
