# %% [markdown]
# # Your own channel
#
# A channel is a class with four methods. They return its state at the start, the links of a round,
# what arrives over them, and (if there is a formula) how likely that is. In this example a link is
# sometimes blocked for several rounds in a row, by a truck or a door.

# %% parameters
DATA, ROUNDS, STEPS = "synthetic", 30, 10

# %%
from dataclasses import dataclass, replace

import matplotlib.pyplot as plt
import numpy as np

import slimfl
from slimfl.experiment import RadioSection
from slimfl.radio import outage_channel
from slimfl.rng import generator

# %% [markdown]
# Each device has a two-state chain, after Gilbert and Elliott. While a link is blocked, its gain is
# 20 dB lower. Everything that must last from round to round is in the *state*, which consists of
# plain arrays, so a run can be stopped and resumed with the same bits. Random numbers come from
# `generator(seed, purpose, round)` and never depend on the order of execution.


# %%
@dataclass(frozen=True)
class Blocked:
    """Rayleigh fading behind an obstacle that comes and goes."""

    radio: RadioSection
    comes: float = 0.1
    goes: float = 0.3
    loss_db: float = 20.0
    needs_payload: bool = False

    def start(self, population, seed):
        blocked = generator(seed, "obstacles").random(len(population)) < self.share
        return {"blocked": blocked.astype(np.float64)}

    def links(self, state, round, devices, seed):
        before = state["blocked"] > 0
        draw = generator(seed, "obstacles", round).random(len(before))
        blocked = np.where(before, draw >= self.goes, draw < self.comes)
        links, _ = outage_channel(self.radio).links({}, round, devices, seed)
        loss = np.where(blocked[devices.ids], 10 ** (-self.loss_db / 10), 1.0)
        return replace(links, gains=links.gains * loss), {"blocked": blocked.astype(np.float64)}

    def receive(self, links, signals, payloads):
        return outage_channel(self.radio).receive(links, signals, payloads)

    def probabilities(self, devices, signal):
        free = outage_channel(self.radio).probabilities(devices, signal)
        behind = free ** (10 ** (self.loss_db / 10))  # e^-g at a threshold that many times higher
        return (1 - self.share) * free + self.share * behind

    @property
    def share(self):
        """Of the time that a link is blocked, in the long run."""
        return self.comes / (self.comes + self.goes)


# %% [markdown]
# ## Look at it before you train over it

# %%
channel = Blocked(RadioSection(channel="good"))
common = {
    "rounds": ROUNDS,
    "data": {"dataset": DATA},
    "training": {"steps": STEPS, "learning_rate": 5e-3},
}
run = slimfl.Experiment(radio=slimfl.Radio(model=channel), **common).run()
arrived = np.array([line.decoded for line in run.lines]).T

figure, axes = plt.subplots(figsize=(6, 2.4))
picture = axes.imshow(arrived, aspect="auto", cmap=plt.get_cmap("viridis", 3), vmin=0, vmax=2)
figure.colorbar(picture, ticks=[0.33, 1, 1.67], label="segments").ax.set_yticklabels("012")
_ = axes.set(xlabel="round", ylabel="device", title="blocked links lose several rounds in a row")

# %% [markdown]
# Does this agree with the formula? The run folder and the report make the same comparison. Several
# blocked rounds follow each other, so the frequency varies more than with independent rounds.

# %%
expected = run.provenance["expected_shares"]
for number, share in enumerate(np.ravel(expected)[:2], 1):
    print(f"segment {number}: {(arrived >= number).mean():.0%} arrived, expected {share:.0%}")

# %% [markdown]
# ## Comparison with a channel without obstacles
#
# The seed is the same, and so are the data, batches and fading.

# %%
free = slimfl.Experiment(radio=slimfl.Radio(channel="good"), **common).run()
figure, axes = plt.subplots(figsize=(5, 2.6))
for one, words in ((free, "good channel"), (run, "with obstacles")):
    axes.plot([100 * line.accuracy["1.0x"] for line in one.lines], label=words)
axes.set(xlabel="round", ylabel="accuracy of 1.0x, %")
_ = axes.legend()

# %% [markdown]
# To use the channel on the command line, in parallel sweeps and in resumed runs, put the class into
# a module and name it: `radio.model = "mylab.blocked:Blocked"` with `radio.options`.
