# %% [markdown]
# # A rival method in 60 lines
#
# A method answers four questions: which widths it produces, what a device does in a round, what the
# server remembers, and how it merges. slimfl provides the loop, the channel, the energy account,
# checkpoints and reports, and every method gets the same devices, batches and fading.
#
# Here is a rival to superposition: in every round each device *draws* one width, trains only that
# width, and sends it as one ordinary message. This is ordered dropout, the idea of FjORD, over a
# radio. The server adds a decaying sum of the changes (server momentum), so it also has a state.

# %% parameters
DATA, ROUNDS, STEPS, SEEDS = "synthetic", 15, 20, [0, 1]

# %%
from dataclasses import dataclass

import numpy as np

import slimfl
from slimfl.methods import Merge, Work


# %%
@dataclass(frozen=True)
class DrawnWidth:
    """Every device trains and sends one width, drawn anew in every round."""

    widths: tuple[float, ...] = (0.5, 1.0)
    momentum: float = 0.3
    name: str = "drawn-width"

    def evaluates(self):
        return tuple(range(len(self.widths)))

    def assign(self, device, round, random):
        index = int(random().integers(device.max_width + 1))
        # one message that carries all segments of the width
        return Work((index,), messages=(tuple(range(index + 1)),))

    def start(self, model):
        return {"velocity": np.zeros_like(model)}

    def merge(self, mean, state):
        return MomentumStep(mean, state | {"momentum": self.momentum})


class MomentumStep(Merge):
    """The mean of what arrived, and a step along the decaying sum of changes."""

    def result(self):
        model, velocity = self.mean.last, self.state["velocity"].copy()
        change = self.mean.result() - model
        arrived = change != 0  # a parameter that nobody delivered rests
        velocity[arrived] = self.state["momentum"] * velocity[arrived] + change[arrived]
        return np.where(arrived, model + velocity, model), {"velocity": velocity}


# %% [markdown]
# ## A fair comparison
#
# The seeds are the same, and so are the data on the devices and the fading. The cost of a message
# follows from its content: a wide message is sent at a higher rate and needs a better channel.

# %%
runs = slimfl.compare(
    method=["slimfl", DrawnWidth()],
    seed=SEEDS,
    rounds=ROUNDS,
    data={"dataset": DATA},
    radio={"channel": "poor"},
    training={"steps": STEPS, "learning_rate": 5e-3},
)
runs.plot()

# %%
runs.summary()

# %% [markdown]
# Under one seed, the difference of two methods is one sample. They are compared by its mean over
# seeds and the interval around it (`slimfl compare`). Two seeds tell almost nothing apart; fewer
# than five are preliminary.

# %%
for method in ("slimfl", "drawn-width"):
    some = runs.where(method=method)
    for width in ("0.5x", "1.0x"):
        values = [100 * run.final_accuracy[width] for run in some]
        print(f"{method:12} {width}: {np.mean(values):.1f} +- {np.std(values, ddof=1):.1f} %")
    print(f"{method:12} sending: {1e3 * np.mean([run.energy_j for run in some]):.1f} mJ")

# %% [markdown]
# Put the class into a module, and you can use it everywhere by its name:
# `method = "mylab.drawn:DrawnWidth"`.
