# %% [markdown]
# # A sweep and its figures
#
# How much accuracy do different data and a poor channel cost at each width? `slimfl.compare`
# runs every combination; with a folder it continues where it stopped if you call it again, and with
# `on="local"` it uses one process per core.

# %% parameters
DATA, ROUNDS, STEPS = "synthetic", 10, 20
ALPHAS, SEEDS = [0.1, 1.0, 10.0], [0, 1]

# %%
import matplotlib.pyplot as plt
import numpy as np

import slimfl

# %% [markdown]
# A list gives several values. With `out="folder"` the runs stay on disk for `slimfl.load`, the
# report (`slimfl report folder`) and the next call.

# %%
runs = slimfl.compare(
    method="slimfl",
    seed=SEEDS,
    rounds=ROUNDS,
    data={"alpha": ALPHAS, "dataset": DATA},
    radio={"channel": ["good", "poor"]},
    training={"steps": STEPS, "learning_rate": 5e-3},
)
runs.summary()

# %% [markdown]
# ## Accuracy and the similarity of the data
#
# Points are the mean over seeds; bars reach from the lowest seed to the highest.

# %%
figure, panels = plt.subplots(1, 2, figsize=(8, 3), sharey=True)
for axes, channel in zip(panels, ("good", "poor"), strict=True):
    for width in ("0.5x", "1.0x"):
        values = np.array(
            [
                [100 * run.final_accuracy[width] for run in runs.where(alpha=a, channel=channel)]
                for a in ALPHAS
            ]
        )
        mean = values.mean(axis=1)
        bars = [mean - values.min(axis=1), values.max(axis=1) - mean]
        axes.errorbar(ALPHAS, mean, bars, marker="o", capsize=3, label=width)
    axes.set(xscale="log", xlabel="alpha (larger is more alike)", title=f"{channel} channel")
panels[0].set(ylabel="accuracy, %")
_ = panels[0].legend()

# %% [markdown]
# ## The same with pandas
#
# The table has one row per run and round, and a column for every setting that differs between runs.

# %%
table = runs.rounds
last = table[table["round"] == table["round"].max()]
last.pivot_table(index="alpha", columns="channel", values=["accuracy_0.5x", "accuracy_1.0x"])

# %% [markdown]
# ## What arrived

# %%
table.groupby("channel")[["delivered_1", "delivered_2", "energy_j"]].mean()
