"""The network and its widths: slimmable layers, UL-MobileNet, segments, cost per width."""

from slimfl.nn.adapt import slimmable
from slimfl.nn.channel_order import ChannelOrder, flat_order
from slimfl.nn.flat import FlatView, Vector, flatten, load_flat, statistics_positions
from slimfl.nn.initialisation import initialise
from slimfl.nn.layers import SlimConv2d, SlimLinear, Slimmable, average_pool
from slimfl.nn.models import MODELS, build, check
from slimfl.nn.norms import SlimBatchNorm2d, SlimGroupNorm, statistics
from slimfl.nn.segmentation import Segments, segments
from slimfl.nn.sub_network import standalone
from slimfl.nn.ul_mobilenet import ULMobileNet
from slimfl.nn.width_cost import WidthCost, cost, multiply_adds, output_shape
from slimfl.nn.widths import active_width, at_width, channels_at

__all__ = [
    "MODELS",
    "ChannelOrder",
    "FlatView",
    "Segments",
    "SlimBatchNorm2d",
    "SlimConv2d",
    "SlimGroupNorm",
    "SlimLinear",
    "Slimmable",
    "ULMobileNet",
    "Vector",
    "WidthCost",
    "active_width",
    "at_width",
    "average_pool",
    "build",
    "channels_at",
    "check",
    "cost",
    "flat_order",
    "flatten",
    "initialise",
    "load_flat",
    "multiply_adds",
    "output_shape",
    "segments",
    "slimmable",
    "standalone",
    "statistics",
    "statistics_positions",
]
