"""Train, export both widths, and let a policy choose between them."""

import sys

import numpy as np
import torch

import slimfl
from slimfl.data import load
from slimfl.export.exporting import export
from slimfl.export.policy import probabilities_of

slimfl.run(out="run", data__dataset="synthetic", rounds=8, training__steps=100)
export("run", "exported", formats=["torch"])

# budget: the width stays the same while the budget stays close to a limit
policy = slimfl.WidthPolicy.from_manifest("exported/manifest.json", hysteresis=0.2)
full = policy.costs[1.0]
print([policy.within(budget * full) for budget in (1.1, 0.9, 1.1, 1.3, 1.1)])

# cascade: narrow first, full when unsure. The exported modules do not need slimfl
sys.path.insert(0, "exported")
import ul_mobilenet_0_5x  # noqa: E402
import ul_mobilenet_1_0x  # noqa: E402


def classifier(network):
    """Bytes in, probabilities out."""
    return lambda images: probabilities_of(network(torch.from_numpy(images)).detach())


classify = {
    0.5: classifier(ul_mobilenet_0_5x.load()),
    1.0: classifier(ul_mobilenet_1_0x.load()),
}
test = load("synthetic").test
images = np.ascontiguousarray(test.images.transpose(0, 3, 1, 2))
for confidence in (0.0, 0.6, 1.0):
    policy = slimfl.WidthPolicy(policy.costs, confidence=confidence)
    answers = policy.cascade(images, classify)
    accuracy = (answers.probabilities.argmax(1) == test.labels).mean()
    print(
        f"confidence {confidence}: accuracy {accuracy:.3f}, {1e6 * answers.cost:.2f} uJ per image"
    )
