"""Two ways to get a network: adapt a plain one, or build it from slimmable layers."""

import torch
from torch import Tensor, nn

import slimfl
from slimfl.nn import average_pool, cost, initialise

WIDTHS = (0.25, 0.5, 1.0)


def adapted() -> nn.Module:
    """A plain sequential network; every convolution and linear layer becomes slimmable."""
    plain = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 2 * 2, 10),
    )
    return slimfl.slimmable(plain)


class Residual(nn.Module):
    """A network that is not sequential: slimmable layers are used like torch's own."""

    def __init__(self, in_channels: int = 1, classes: int = 10, channels: int = 16) -> None:
        super().__init__()
        # the first layer keeps its inputs, the image; the last keeps its outputs, the classes
        self.stem = slimfl.nn.SlimConv2d(in_channels, channels, 3, padding=1, slim_in=False)
        self.inner = slimfl.nn.SlimConv2d(channels, channels, 3, padding=1)
        self.head = slimfl.nn.SlimLinear(channels, classes, slim_out=False)

    def forward(self, images: Tensor) -> Tensor:
        """The logits at the active width; nothing here needs to know which one it is."""
        x = torch.relu(self.stem(images))
        x = torch.relu(x + self.inner(x))
        logits: Tensor = self.head(average_pool(x))  # like x.mean((2, 3)), but faster
        return logits


def main() -> None:
    """Print what every width costs, then train both networks."""
    for network in (adapted(), Residual()):
        initialise(network, "he", seed=1)  # a network you pass in is used with its own weights
        for row in cost(network, WIDTHS, image_shape=(1, 12, 12)):
            print(f"{row.width}x: {row.parameters} parameters, {row.multiply_adds} multiply-adds")
        run = slimfl.Experiment(
            rounds=3,
            model=slimfl.Model(name=network, widths=WIDTHS),
            data=slimfl.Data(dataset="synthetic"),
            radio=slimfl.Radio(channel="good"),
            training=slimfl.Training(steps=10, learning_rate=5e-3),
        ).run()
        print({width: round(accuracy, 3) for width, accuracy in run.final_accuracy.items()})


if __name__ == "__main__":
    main()
