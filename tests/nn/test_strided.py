"""A strided 1x1 convolution: its values, and that training one does not crash the interpreter.

oneDNN writes past a buffer in the weight gradient of a strided 1x1 convolution with few input
channels in channels-last memory (https://github.com/uxlfoundation/oneDNN/issues/6035), which is how
this project keeps images.
"""

import subprocess
import sys

import pytest
import torch
from torch import nn

from slimfl.nn import SlimConv2d, at_width

SHORTCUTS = """
import torch
from slimfl.nn import SlimConv2d, at_width

torch.set_num_threads(1)
torch.manual_seed(0)
for channels, size, batch in ((4, 64, 32), (3, 64, 64), (8, 64, 32)):
    images = torch.randn(batch, size, size, channels).permute(0, 3, 1, 2)
    shortcut = SlimConv2d(channels, 16, 1, stride=2, bias=False, slim_in=False)
    with at_width(0.5):
        out = shortcut(images)
    toward = torch.randn_like(out)
    out.backward(toward)
    naive = torch.einsum("nohw,nihw->oi", toward.double(), images[:, :, ::2, ::2].double())
    torch.testing.assert_close(shortcut.weight.grad[:8, :, 0, 0].double(), naive,
                               rtol=1e-3, atol=1e-3)
print("whole")
"""


@pytest.mark.slow
def test_training_a_strided_shortcut_ends_with_the_right_gradient_and_no_crash():
    ended = subprocess.run(
        [sys.executable, "-c", SHORTCUTS], capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "whole\n"


@pytest.mark.parametrize(
    ("stride", "padding", "size"),
    [(2, 0, 9), (2, 0, 8), ((2, 3), (1, 2), 9), ((1, 2), 1, 7), (3, "valid", 10)],
)
@pytest.mark.parametrize("groups", [1, 4])
def test_it_computes_what_torchs_own_layer_does(stride, padding, size, groups):
    slim = SlimConv2d(4, 4, 1, stride, padding, groups=groups).double()
    plain = nn.Conv2d(4, 4, 1, stride, padding, groups=groups).double()
    plain.load_state_dict(slim.state_dict())
    images = torch.randn(2, 4, size, size, dtype=torch.float64)
    torch.testing.assert_close(slim(images), plain(images))
    with at_width(0.5):
        assert slim(images[:, :2]).shape[1] == 2
