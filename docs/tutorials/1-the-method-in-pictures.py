# %% [markdown]
# # The method in pictures
#
# In a SlimFL federation, devices train one network with several widths and send all widths in one
# radio transmission, and the server keeps what the channel lets through. Every picture below is
# drawn from the library's own formulas and from one run.

# %% parameters
DATA, ROUNDS, STEPS = "fashion-mnist", 10, 30

# %%
import matplotlib.pyplot as plt
import numpy as np

import slimfl
from slimfl.experiment import RadioSection
from slimfl.nn import SlimConv2d, segments
from slimfl.radio import noise_to_power, signal

# %% [markdown]
# ## One network, two widths
#
# This layer has 16 by 16 weights. The narrow network, 0.5x, is the leading block of the full one.
# The weights therefore form two segments: those that 0.5x uses (segment 1), and those that only
# 1.0x uses (segment 2).

# %%
layer = SlimConv2d(16, 16, 1, bias=False)
numbers = segments(layer, (0.5, 1.0)).segment_of.reshape(16, 16) + 1
figure, axes = plt.subplots(figsize=(3, 2.6))
picture = axes.imshow(numbers, cmap=plt.get_cmap("viridis", 2))
figure.colorbar(picture, ticks=[1.25, 1.75], label="segment").ax.set_yticklabels(["1", "2"])
_ = axes.set(xlabel="input channel", ylabel="output channel")

# %% [markdown]
# ## One transmission, two messages
#
# The device sends both segments at once, on top of each other: segment 1 with 80 % of the power,
# segment 2 with 20 %. The server decodes segment 1 first, subtracts it, and then tries segment 2.
# Each needs a minimum fading gain. On the poor channel, with the paper's equal rates:

# %%
radio = RadioSection(channel="poor", rates="equal")
sent = signal(radio, ((0,), (1,)), 2).coding
low, high = sent.thresholds(noise_to_power(radio))
print(f"power split {sent.split}, segment 1 from gain {low:.2f} on, segment 2 from {high:.2f} on")

gain = np.linspace(0, 2.5, 400)
figure, axes = plt.subplots(figsize=(5, 2.4))
axes.plot(gain, np.exp(-gain), color="black")
for start, end, words in ((0, low, "nothing"), (low, high, "0.5x"), (high, 2.5, "1.0x")):
    here = (gain >= start) & (gain <= end)
    axes.fill_between(gain[here], np.exp(-gain[here]), alpha=0.6, label=words)
axes.set(xlabel="fading gain (Rayleigh fading)", ylabel="density")
_ = axes.legend(title="what arrives")

# %% [markdown]
# ## A run
#
# Ten devices hold different data. After every round the server tests both widths of the global
# model. For comparison we also run Vanilla FL, which trains and sends one width.

# %%
runs = slimfl.compare(
    method=["slimfl", "vanilla-all"],
    rounds=ROUNDS,
    data={"dataset": DATA, "alpha": 1.0, "test_samples": 2000},
    radio={"channel": "poor", "rates": "equal"},
    training={"steps": STEPS},
)
run = runs[0]
run

# %% [markdown]
# What arrived from each device: 0 is nothing, 1 the narrow model, 2 the whole one. Compare the
# shares with the formula: the probability that a Rayleigh gain exceeds the threshold is
# $e^{-threshold}$.

# %%
arrived = np.array([line.decoded for line in run.lines]).T
figure, axes = plt.subplots(figsize=(6, 2.4))
picture = axes.imshow(arrived, aspect="auto", cmap=plt.get_cmap("viridis", 3), vmin=0, vmax=2)
figure.colorbar(picture, ticks=[0.33, 1, 1.67], label="segments").ax.set_yticklabels("012")
_ = axes.set(xlabel="round", ylabel="device")

# %%
for number, threshold in enumerate((low, high), 1):
    seen, expected = (arrived >= number).mean(), np.exp(-threshold)
    print(f"segment {number}: arrived {seen:.0%} of the time, expected {expected:.0%}")

# %% [markdown]
# ## What it is good for
#
# Vanilla FL's wide model needs a better channel than SlimFL's first segment does, so fewer of its
# updates arrive; its narrow model arrives more often but is less capable.
# One seed shows how to compare methods, not which one wins. For that, use several
# (`seed=[0, 1, 2]`).

# %%
runs

# %%
runs.plot()
