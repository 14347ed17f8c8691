"""What lost segments do to batch normalisation: accuracy with merged and with new statistics."""

import argparse

import torch

import slimfl
from slimfl.data import load_section
from slimfl.nn import SlimBatchNorm2d, at_width

NETWORKS = ("ul-mobilenet", "us-mobilenet")


def images(samples: slimfl.data.Samples, moments: slimfl.data.Moments) -> torch.Tensor:
    """Normalised as in training."""
    mean, deviation = (torch.from_numpy(one) for one in moments)
    pixels = torch.from_numpy(samples.images).float() / 255
    return ((pixels - mean) / deviation).permute(0, 3, 1, 2)


def measured_anew(network: torch.nn.Module, width: float, batches: list[torch.Tensor]) -> None:
    """Replace the statistics of a width by their mean over batches of training images."""
    norms = [layer for layer in network.modules() if isinstance(layer, SlimBatchNorm2d)]
    network.train()
    with torch.no_grad(), at_width(width):
        for number, batch in enumerate(batches):
            for norm in norms:
                norm.momentum = 1 / (number + 1)  # a plain mean
            network(batch)


def accuracy(network: torch.nn.Module, width: float, x: torch.Tensor, y: torch.Tensor) -> float:
    """The share of images that a width classifies rightly."""
    network.eval()
    with torch.no_grad(), at_width(width):
        return float((network(x).argmax(1) == y).float().mean())


def main() -> None:
    """Run both networks over several channels and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--noise-dbm", type=float, nargs="+", default=[-51.0, -34.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--dataset", default="synthetic")
    parser.add_argument("--alpha", type=float, default=1.0)
    asked = parser.parse_args()
    print("network alpha noise_dbm seed lost1 lost2 merged-0.5x merged-1.0x anew-0.5x anew-1.0x")
    for noise_dbm in asked.noise_dbm:
        for name in NETWORKS:
            for seed in asked.seeds:
                run = slimfl.Experiment(
                    seed=seed,
                    rounds=asked.rounds,
                    data=slimfl.Data(dataset=asked.dataset, downscale=4, alpha=asked.alpha),
                    model=slimfl.Model(name=name),
                    radio=slimfl.Radio(noise_dbm=noise_dbm, rates="equal"),
                    training=slimfl.Training(steps=asked.steps, learning_rate=3e-3),
                    federation=slimfl.Federation(evaluate_every=asked.rounds),
                ).run()
                data = load_section(run.experiment.data)
                moments = data.normalisation(run.experiment.data.normalise)
                x, y = images(data.test, moments), torch.from_numpy(data.test.labels)
                arrived = [sum(line["delivered"][s] for line in run.lines) for s in (0, 1)]
                sent = asked.rounds * run.experiment.federation.devices
                lost = [1 - n / sent for n in arrived]
                as_merged = [accuracy(run.network, width, x, y) for width in (0.5, 1.0)]
                batches = list(images(data.train.first(2000), moments).split(16))
                for width in (0.5, 1.0):
                    measured_anew(run.network, width, batches)
                anew = [accuracy(run.network, width, x, y) for width in (0.5, 1.0)]
                numbers = " ".join(f"{value:.3f}" for value in (*lost, *as_merged, *anew))
                print(f"{name} {asked.alpha:g} {noise_dbm:g} {seed} {numbers}", flush=True)


if __name__ == "__main__":
    main()
