"""With which recipe does UL-MobileNet learn fastest at a learning rate of 1e-3?

No source says how to initialise the network, how to normalise its input, how large a batch is or
whether a device keeps its Adam moments. This changes one choice at a time, with the same number of
images in every run, and writes the accuracies to a JSON file.

    python benchmarks/recipe.py docs/results/recipe.json
"""

import json
import sys
from pathlib import Path

import numpy as np

import slimfl

IMAGES_PER_ROUND = 1600
BASE = {
    "initialisation": "he",
    "normalise": "standard",
    "batch_size": 32,
    "optimiser_state": "kept",
}
CHOICES = {
    "initialisation": ["he", "he-fan-out", "xavier", "torch"],
    "normalise": ["standard", "plain"],
    "batch_size": [16, 32, 64, 128],
    "optimiser_state": ["kept", "fresh"],
}
ROUNDS, CHANNEL, ALPHA = 10, "good", 10.0
SEEDS = (0, 1)


def accuracy(recipe: dict, seed: int) -> dict[str, float]:
    """Both widths' test accuracy after the last round."""
    run = slimfl.Experiment(
        seed=seed,
        model=slimfl.Model(initialisation=recipe["initialisation"]),
        rounds=ROUNDS,
        radio=slimfl.Radio(channel=CHANNEL, rates="equal"),
        data=slimfl.Data(alpha=ALPHA, normalise=recipe["normalise"]),
        training=slimfl.Training(
            batch_size=recipe["batch_size"],
            steps=IMAGES_PER_ROUND // recipe["batch_size"],
            optimiser_state=recipe["optimiser_state"],
        ),
        federation=slimfl.Federation(evaluate_every=ROUNDS),
    ).run()
    return run.final_accuracy


def main(out: Path) -> None:
    """Run the recipes and write their accuracies."""
    recipes = [BASE]
    for key, values in CHOICES.items():
        recipes += [BASE | {key: value} for value in values if value != BASE[key]]
    rows = []
    for recipe in recipes:
        scores = [accuracy(recipe, seed) for seed in SEEDS]
        widths = {
            width: {
                "mean": float(np.mean([score[width] for score in scores])),
                "deviation": float(np.std([score[width] for score in scores])),
            }
            for width in scores[0]
        }
        rows.append({**recipe, "accuracy": widths})
        print(recipe, widths, flush=True)
    document = {
        "command": "python benchmarks/recipe.py docs/results/recipe.json",
        "seeds": SEEDS,
        "images_per_device_and_round": IMAGES_PER_ROUND,
        "rounds": ROUNDS,
        "radio.channel": CHANNEL,
        "data.alpha": ALPHA,
        "recipes": rows,
    }
    out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
