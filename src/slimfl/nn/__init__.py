"""The network and its widths: slimmable layers, UL-MobileNet, segments, cost per width."""

from typing import TYPE_CHECKING

from slimfl.lazy import lazy_names

if TYPE_CHECKING:
    from slimfl.nn.adapt import slimmable
    from slimfl.nn.flat import FlatView, flatten, load_flat, statistics_positions
    from slimfl.nn.initialisation import initialise
    from slimfl.nn.layers import SlimConv2d, SlimLinear, average_pool
    from slimfl.nn.models import MODELS, build, check
    from slimfl.nn.norms import SlimBatchNorm2d, SlimGroupNorm, statistics
    from slimfl.nn.order import ChannelOrder, FlatOrders, Vector, flat_order, put_back
    from slimfl.nn.segmentation import Segments, segments
    from slimfl.nn.sub_network import standalone
    from slimfl.nn.ul_mobilenet import ULMobileNet
    from slimfl.nn.width_cost import WidthCost, cost, multiply_adds, output_shape
    from slimfl.nn.widths import Slimmable, active_width, at_width, channels_at
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "slimfl.nn.adapt": ["slimmable"],
            "slimfl.nn.flat": ["FlatView", "flatten", "load_flat", "statistics_positions"],
            "slimfl.nn.initialisation": ["initialise"],
            "slimfl.nn.layers": ["SlimConv2d", "SlimLinear", "average_pool"],
            "slimfl.nn.models": ["MODELS", "build", "check"],
            "slimfl.nn.norms": ["SlimBatchNorm2d", "SlimGroupNorm", "statistics"],
            "slimfl.nn.order": ["ChannelOrder", "FlatOrders", "Vector", "flat_order", "put_back"],
            "slimfl.nn.segmentation": ["Segments", "segments"],
            "slimfl.nn.sub_network": ["standalone"],
            "slimfl.nn.ul_mobilenet": ["ULMobileNet"],
            "slimfl.nn.width_cost": ["WidthCost", "cost", "multiply_adds", "output_shape"],
            "slimfl.nn.widths": ["Slimmable", "active_width", "at_width", "channels_at"],
        },
    )

__all__ = [
    "MODELS",
    "ChannelOrder",
    "FlatOrders",
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
    "put_back",
    "segments",
    "slimmable",
    "standalone",
    "statistics",
    "statistics_positions",
]
