"""The network and its widths: slimmable layers, UL-MobileNet, segments, cost per width."""

from typing import TYPE_CHECKING

from slimfl.lazy import public_names

if TYPE_CHECKING:
    from slimfl.nn.adapt import slimmable as slimmable
    from slimfl.nn.flat import FlatOrders as FlatOrders
    from slimfl.nn.flat import FlatView as FlatView
    from slimfl.nn.flat import flat_order as flat_order
    from slimfl.nn.flat import flatten as flatten
    from slimfl.nn.flat import load_flat as load_flat
    from slimfl.nn.flat import put_back as put_back
    from slimfl.nn.flat import statistics_positions as statistics_positions
    from slimfl.nn.layers import SlimConv2d as SlimConv2d
    from slimfl.nn.layers import SlimLinear as SlimLinear
    from slimfl.nn.layers import average_pool as average_pool
    from slimfl.nn.mobilenets import ULMobileNet as ULMobileNet
    from slimfl.nn.models import MODELS as MODELS
    from slimfl.nn.models import build as build
    from slimfl.nn.models import check as check
    from slimfl.nn.models import initialise as initialise
    from slimfl.nn.models import network_of as network_of
    from slimfl.nn.norms import SlimBatchNorm2d as SlimBatchNorm2d
    from slimfl.nn.norms import SlimGroupNorm as SlimGroupNorm
    from slimfl.nn.norms import statistics as statistics
    from slimfl.nn.order import ChannelOrder as ChannelOrder
    from slimfl.nn.order import Vector as Vector
    from slimfl.nn.sub_network import standalone as standalone
    from slimfl.nn.width_cost import WidthCost as WidthCost
    from slimfl.nn.width_cost import cost as cost
    from slimfl.nn.width_cost import multiply_adds as multiply_adds
    from slimfl.nn.width_cost import output_shape as output_shape
    from slimfl.nn.widths import Segments as Segments
    from slimfl.nn.widths import Slimmable as Slimmable
    from slimfl.nn.widths import active_width as active_width
    from slimfl.nn.widths import at_width as at_width
    from slimfl.nn.widths import channels_at as channels_at
    from slimfl.nn.widths import segments as segments
else:
    __getattr__, __dir__, __all__ = public_names(__name__, __file__)
