"""What runs on a device of Flower's simulation.

A module of its own, so that Ray's actors import it by name: what is cached here lives as long as an
actor, and nothing but messages travels between processes.
"""

from functools import lru_cache

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from peer_network import Network, draw_images, make_network, train_epoch
from torch import Tensor

app = ClientApp()


@lru_cache(1)
def resident_network() -> Network:
    """One network an actor; its parameters are replaced for every device."""
    torch.set_num_threads(1)
    return make_network()


@lru_cache(1)
def all_images(count: int) -> tuple[Tensor, Tensor]:
    """The images of all devices, drawn once an actor."""
    return draw_images(count)


@app.train()
def train(message: Message, context: Context) -> Message:
    """One local epoch from the global model."""
    network = resident_network()
    network.load_state_dict(message.content["arrays"].to_torch_state_dict())
    config = message.content["config"]
    each = config["images-per-device"]
    pixels, labels = all_images(each * context.node_config["num-partitions"])
    first = each * context.node_config["partition-id"]
    own = slice(first, first + each)
    train_epoch(network, pixels[own], labels[own], config["batch-size"])
    reply = RecordDict(
        {
            "arrays": ArrayRecord(network.state_dict()),
            "metrics": MetricRecord({"num-examples": each}),
        }
    )
    return Message(content=reply, reply_to=message)
