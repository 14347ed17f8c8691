"""Federated averaging with fluke; see README.md."""

import importlib
import os
import re
from queue import SimpleQueue
from threading import Thread

import torch
from peer_network import LEARNING_RATE, draw_images, make_network, norm_of, normalise
from peer_protocol import Peer, Work, serve

os.environ["WANDB_MODE"] = "disabled"

#: More rounds than the bench will ask for: fluke drives them, the bench ends the process.
ROUNDS = 1_000_000


def import_torchvision() -> None:
    """fluke imports torchvision, whose published build wants PyTorch's CUDA build.

    With PyTorch for the CPU its operators are missing, and the import fails for want of their
    names. Nothing here calls them, so that the names are enough.
    """
    for _ in range(10):
        try:
            importlib.import_module("torchvision")
        except RuntimeError as error:
            missing = re.search(r"operator (torchvision::\w+) does not exist", str(error))
            if missing is None:
                raise
            torch.library.define(missing[1], "(Tensor a, Tensor b, float c) -> Tensor")
        else:
            return


class Stepped:
    """An observer of the federation that waits for the bench before each round."""

    def __init__(self) -> None:
        self.begin: SimpleQueue[None] = SimpleQueue()
        self.ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def start_round(self, round: int, global_model: torch.nn.Module) -> None:
        """Wait."""
        self.begin.get()

    def end_round(self, round: int) -> None:
        """Say so."""
        self.ended.put(None)


def prepare(work: Work) -> Peer:
    """Start fluke's own loop; it stands still between rounds."""
    import_torchvision()
    from fluke import DDict, FlukeENV
    from fluke.algorithms.fedavg import FedAVG
    from fluke.client import Client
    from fluke.config import OptimizerConfigurator
    from fluke.data import FastDataLoader
    from fluke.server import Server

    environment = FlukeENV()
    environment.set_seed(0)
    environment.set_device("cpu")
    environment.set_inmemory(True)
    environment.set_eval_cfg(pre_fit=False, post_fit=False, locals=False, server=False)
    pixels, labels = draw_images(work.images)
    optimiser = OptimizerConfigurator(DDict(name="Adam", lr=LEARNING_RATE))
    each = work.images_per_device
    clients = [
        Client(
            index=number,
            train_set=FastDataLoader(
                pixels[first : first + each],
                labels[first : first + each],
                num_labels=10,
                batch_size=work.batch_size,
                shuffle=True,
                transforms=normalise,
                skip_singleton=False,
            ),
            test_set=None,
            optimizer_cfg=optimiser,
            loss_fn=torch.nn.CrossEntropyLoss(),
            local_epochs=1,
        )
        for number, first in enumerate(range(0, work.images, each))
    ]
    server = Server(model=make_network(), test_set=None, clients=clients)
    algorithm = FedAVG(work.devices, None, DDict(), clients=clients, server=server)
    stepped = Stepped()
    algorithm.attach(stepped)

    def run() -> None:
        try:
            algorithm.run(ROUNDS, 1.0)
            stepped.ended.put(RuntimeError("fluke's loop ended of its own accord"))
        except BaseException as error:
            stepped.ended.put(error)

    Thread(target=run, daemon=True).start()

    def round_() -> None:
        stepped.begin.put(None)
        if error := stepped.ended.get():
            raise error

    return Peer(round_, lambda: norm_of(server.model.parameters()))


if __name__ == "__main__":
    serve(prepare)
