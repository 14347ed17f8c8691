# %% [markdown]
# # From a run to a phone
#
# A trained network contains one network per width. Here we export the narrow one, as a file that
# needs neither slimfl nor the weights that its width does not use.

# %% parameters
DATA, ROUNDS = "fashion-mnist", 10

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import torch

import slimfl
from slimfl.data import load
from slimfl.nn import cost

folder = Path(tempfile.mkdtemp())
run = slimfl.Experiment(
    rounds=ROUNDS, data=slimfl.Data(dataset=DATA), radio=slimfl.Radio(channel="good")
).run(folder / "run")
run

# %% [markdown]
# ## The cost and accuracy of each width

# %%
data = load(DATA)
rows, columns, channels = data.train.images.shape[1:]
costs = cost(run.network, (0.5, 1.0), (channels, rows, columns))
for row in costs:
    accuracy = run.final_accuracy[f"{row.width}x"]
    print(
        f"{row.width}x: {row.parameters:5,} parameters, {row.multiply_adds / 1e6:5.2f} million "
        f"multiply-adds per image, accuracy {accuracy:.1%}"
    )

# %%
figure, axes = plt.subplots(figsize=(4.5, 2.6))
for row in costs:
    point = row.multiply_adds / 1e6, 100 * run.final_accuracy[f"{row.width}x"]
    axes.plot(*point, "o")
    axes.annotate(f"  {row.width}x", point)
_ = axes.set(xlabel="million multiply-adds per image", ylabel="accuracy, %")

# %% [markdown]
# ## One width on its own
#
# `run.model(0.5)` is an ordinary module of torch's layers. Its accuracy is what the run
# recorded, to the last image.

# %%
small = run.model(0.5)
mean, deviation = data.normalisation(run.experiment.data.normalise)


def ready(images):
    """Bytes [sample, row, column, channel] as the network wants them."""
    scaled = (torch.from_numpy(images) / 255 - torch.from_numpy(mean)) / torch.from_numpy(deviation)
    return scaled.permute(0, 3, 1, 2)


with torch.no_grad():
    answers = small(ready(data.test.images)).argmax(1)
right = int((answers == torch.from_numpy(data.test.labels)).sum())
recorded = round(run.final_accuracy["0.5x"] * len(data.test))
print(f"{right} of {len(data.test)} right; the run recorded {recorded}")

# %% [markdown]
# ## A file
#
# `torch.export` writes the network with its weights. The program below opens it in another
# process, which never imports slimfl, like an app that runs ExecuTorch or ONNX Runtime.

# %%
example = ready(data.test.images[:1])
program = """
import sys, torch
net = torch.export.load(sys.argv[1]).module()
weights = sum(p.numel() for p in net.parameters())
print(f"{weights:,} weights, {4 * weights:,} bytes; slimfl imported: {'slimfl' in sys.modules}")
"""
for width in (0.5, 1.0):
    path = folder / f"width-{width}.pt2"
    torch.export.save(torch.export.export(run.model(width), (example,)), path)
    command = [sys.executable, "-c", program, path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    print(f"{width}x: {done.stdout.strip()}")

# %% [markdown]
# ## The same in one command
#
# `slimfl export RUN --width 0.5,1.0 --format onnx --int8` writes ONNX files with the normalisation
# inside, checks them against the run to the last image, and adds a manifest and a model card.
# `slimfl pick RUN --max-macs 1e6` says which width fits a budget.
