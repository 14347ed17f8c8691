# %% [markdown]
# # Your own network
#
# You can use any network whose layers are slimmable. There are two ways to get one: adapt a
# sequential network, or build it from slimmable layers.

# %% parameters
DATA, ROUNDS, STEPS = "synthetic", 12, 20

# %%
import torch
from torch import nn

import slimfl
from slimfl.nn import average_pool, cost

# %% [markdown]
# ## Adapt a plain network
#
# `slimfl.slimmable` copies an `nn.Sequential`. At 1.0x the copy computes what the original does.

# %%
plain = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.GroupNorm(4, 16),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(32, 10),
)
adapted = slimfl.slimmable(plain)
images = torch.randn(2, 1, 12, 12)
print("largest difference:", (adapted(images) - plain(images)).abs().max().item())
with slimfl.nn.at_width(0.5):
    print("at half width:", adapted[0](images).shape[1], "channels instead of 16")

# %% [markdown]
# ## Or build one
#
# This is a small residual network with a strided shortcut. Use slimmable layers like torch's own;
# the width is not an argument of `forward`. The first layer keeps all its inputs, the image
# (`slim_in=False`), and the last keeps all its outputs, the classes (`slim_out=False`).


# %%
class Block(nn.Module):
    """Two convolutions and a shortcut that halves the resolution."""

    def __init__(self, into, out):
        super().__init__()
        self.first = slimfl.nn.SlimConv2d(into, out, 3, stride=2, padding=1, bias=False)
        self.norm1 = slimfl.nn.SlimGroupNorm(4, out)
        self.second = slimfl.nn.SlimConv2d(out, out, 3, padding=1, bias=False)
        self.norm2 = slimfl.nn.SlimGroupNorm(4, out)
        self.shortcut = slimfl.nn.SlimConv2d(into, out, 1, stride=2, bias=False)

    def forward(self, x):
        inner = torch.relu(self.norm1(self.first(x)))
        return torch.relu(self.norm2(self.second(inner)) + self.shortcut(x))


class SmallResNet(nn.Module):
    """A stem, two blocks, the mean of every channel, a linear layer."""

    def __init__(self, in_channels=1, classes=10):
        super().__init__()
        self.stem = slimfl.nn.SlimConv2d(in_channels, 16, 3, padding=1, slim_in=False)
        self.blocks = nn.Sequential(Block(16, 16), Block(16, 32))
        self.head = slimfl.nn.SlimLinear(32, classes, slim_out=False)

    def forward(self, images):
        return self.head(average_pool(self.blocks(torch.relu(self.stem(images)))))


# %% [markdown]
# What every width costs:

# %%
torch.manual_seed(0)
network = SmallResNet()
for row in cost(network, (0.25, 0.5, 1.0), image_shape=(1, 12, 12)):
    print(f"{row.width}x: {row.parameters:6,} parameters, {row.multiply_adds:9,} multiply-adds")

# %% [markdown]
# ## Train it
#
# Three widths make three segments in one transmission. Batch normalisation works too
# (`SlimBatchNorm2d`): it keeps statistics for every width, which are sent with the width's segment.

# %%
run = slimfl.Experiment(
    rounds=ROUNDS,
    model=slimfl.Model(name=network, widths=(0.25, 0.5, 1.0)),
    data=slimfl.Data(dataset=DATA),
    radio=slimfl.Radio(channel="good"),
    training=slimfl.Training(steps=STEPS, learning_rate=3e-3),
).run()
run

# %%
run.plot()

# %% [markdown]
# ## Extract one width
#
# `run.model(0.25)` is a plain module with torch's own layers and no unused weights.

# %%
small = run.model(0.25)
print(small.stem, sum(p.numel() for p in small.parameters()), "parameters")

# %% [markdown]
# ## What is refused
#
# A layer that would silently give wrong results is an error, and the message says how to fix it.

# %%
normed = nn.Sequential(slimfl.nn.SlimConv2d(1, 8, 3, slim_in=False), nn.BatchNorm2d(8))
try:
    slimfl.Experiment(
        rounds=1, model=slimfl.Model(name=normed), data=slimfl.Data(dataset=DATA)
    ).run()
except slimfl.errors.RequestError as error:
    print(error)
