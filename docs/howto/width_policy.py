"""Train, export both widths, and let a policy choose between them."""

from pathlib import Path

import numpy as np
import torch

import slimfl
from slimfl.data import load
from slimfl.export.exporting import export
from slimfl.export.policy import probabilities_of
from slimfl.export.trained import deployable, load_trained

slimfl.Experiment(
    rounds=8, data=slimfl.Data(dataset="synthetic"), training=slimfl.Training(steps=100)
).run("run")
export("run", "exported", formats=["safetensors"])

# budget: the width stays the same while the budget stays close to a limit
policy = slimfl.export.policy.WidthPolicy.from_manifest("exported/manifest.json", hysteresis=0.2)
full = policy.costs[1.0]
print([policy.within(budget * full) for budget in (1.1, 0.9, 1.1, 1.3, 1.1)])

# cascade: narrow first, full when unsure
trained = load_trained(Path("run"))


def classifier(network):
    """Bytes in, probabilities out; on a device, the exported file in its runtime."""
    return lambda images: probabilities_of(network(torch.from_numpy(images)))


classify = {width: classifier(deployable(trained, width)) for width in (0.5, 1.0)}
test = load("synthetic").test
images = np.ascontiguousarray(test.images.transpose(0, 3, 1, 2))
for confidence in (0.0, 0.6, 1.0):
    policy = slimfl.export.policy.WidthPolicy(policy.costs, confidence=confidence)
    answers = policy.cascade(images, classify)
    accuracy = (answers.probabilities.argmax(1) == test.labels).mean()
    print(
        f"confidence {confidence}: accuracy {accuracy:.3f}, {1e6 * answers.cost:.2f} uJ per image"
    )
