"""Networks of a user's own, for tests of several rooms."""

import torch
from torch import nn

from slimfl.nn import SlimConv2d, SlimLinear, active_width, channels_at


class Scale(nn.Module):
    """An own slimmable layer without a plain form: one factor per channel, in no registry."""

    def __init__(self, channels):
        super().__init__()
        self.factor = nn.Parameter(torch.rand(channels) + 0.5)

    def active_shapes(self, width):
        return {"factor": (channels_at(self.factor.numel(), width),)}

    def forward(self, x):
        return x * self.factor[: x.shape[1]].view(1, -1, 1, 1)


class Residual(nn.Module):
    """A skip connection, an own layer, one that is used twice, an offset, a plain last layer."""

    def __init__(self, channels=5, classes=3, asks_for_width=False):
        super().__init__()
        self.offset = nn.Parameter(torch.rand(classes))
        self.enter = SlimConv2d(1, channels, 3, padding=1, slim_in=False)
        self.scale = Scale(channels)
        self.middle = SlimConv2d(channels, channels, 1)
        self.again = self.middle
        self.head = SlimLinear(channels, classes, slim_out=False)
        self.last = nn.Linear(classes, classes)
        self.asks_for_width = asks_for_width

    def forward(self, images):
        x = torch.tanh(self.enter(images))
        x = x + torch.tanh(self.again(torch.tanh(self.middle(self.scale(x)))))
        logits = self.last(torch.tanh(self.head(x.mean((2, 3)))) + self.offset)
        return logits * active_width() if self.asks_for_width else logits
