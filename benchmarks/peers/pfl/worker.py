"""Federated averaging on pfl's simulator; see README.md.

pfl runs one process per core, each with its share of the devices, and sums over them with
`torch.distributed`. The worker is rank 0 and starts the others as `torchrun` would.
"""

import json
import os
import socket
import subprocess
import sys
from dataclasses import asdict

from peer_protocol import Peer, Work, available_cores, die_with_parent, serve


def start_ranks(work: Work) -> list[subprocess.Popen[str]]:
    """Ranks 1 and up; each trains its share of a round for a line on its standard input."""
    count = min(available_cores(), work.devices)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.environ |= {
        "TORCHELASTIC_RUN_ID": "bench",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "OMP_NUM_THREADS": "1",
        "PFL_PYTORCH_DEVICE": "cpu",
        "RANK": "0",
        "LOCAL_RANK": "0",
    }
    command = [sys.executable, __file__, "--rank", json.dumps(asdict(work))]
    return [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            text=True,
            env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(1, count)
    ]


def make_peer(work: Work) -> Peer:
    """This rank's part of pfl's own loop."""
    import numpy as np
    import torch
    import torch.nn.functional as F
    from peer_network import LEARNING_RATE, Network, draw_images, norm_of, normalise
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import CrossSiloUserSampler
    from pfl.hyperparam import NNTrainHyperParams
    from pfl.metrics import Weighted
    from pfl.model.pytorch import PyTorchModel

    class PflNetwork(Network):
        """The network with what pfl wants of one."""

        def loss(self, pixels: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return F.cross_entropy(self(normalise(pixels)), labels)

        def metrics(self, pixels: torch.Tensor, labels: torch.Tensor) -> dict[str, Weighted]:
            # asked for in the first round only, and kept free of cost there
            return {"seen": Weighted.from_unweighted(len(labels))}

    torch.set_num_threads(1)
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 - pfl draws from it, alike in all ranks
    network = PflNetwork().to(memory_format=torch.channels_last)
    model = PyTorchModel(network, torch.optim.Adam, torch.optim.SGD(network.parameters(), lr=1.0))
    pixels, labels = draw_images(work.images)
    each = work.images_per_device
    users = [
        Dataset((pixels[first : first + each], labels[first : first + each]), user_id=str(number))
        for number, first in enumerate(range(0, work.images, each))
    ]
    # a fixed share a rank: with a common order, an odd number of devices makes the ranks drift
    # apart, and a round would train one device twice and another not at all
    sampler = CrossSiloUserSampler("minimize_reuse", user_ids=range(work.devices))
    data = FederatedDataset(users.__getitem__, sampler)
    backend = SimulatedBackend(training_data=data, val_data=data)
    algorithm = FederatedAveraging()
    params = NNTrainHyperParams(
        local_batch_size=work.batch_size, local_num_epochs=1, local_learning_rate=LEARNING_RATE
    )
    rounds = 0

    def round_() -> None:
        nonlocal rounds
        rounds += 1
        algorithm.run(
            algorithm_params=NNAlgorithmParams(
                central_num_iterations=rounds,
                evaluation_frequency=1_000_000,  # only in the first: see `metrics`
                train_cohort_size=work.devices,
                val_cohort_size=None,
            ),
            backend=backend,
            model=model,
            model_train_params=params,
            send_metrics_to_platform=False,
        )

    return Peer(round_, lambda: norm_of(network.parameters()))


def prepare(work: Work) -> Peer:
    """All ranks; a round begins on all at the same time."""
    others = start_ranks(work)
    own = make_peer(work)

    def round_() -> None:
        for rank in others:
            assert rank.stdin is not None
            rank.stdin.write("go\n")
            rank.stdin.flush()
        own.round()

    return Peer(round_, own.norm)


if __name__ == "__main__":
    if sys.argv[1] == "--rank":
        die_with_parent()
        peer = make_peer(Work(**json.loads(sys.argv[2])))
        for _ in sys.stdin:
            peer.round()
    else:
        serve(prepare)
