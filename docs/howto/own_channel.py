"""Run SlimFL over your own channels, each given by its name."""

import slimfl

CHANNELS = {
    "mylab.drifting:DriftingFading": {"correlation": 0.9},
    "mylab.bit_errors:BitErrors": {"flip_probability": 0.001},
}


def main() -> None:
    """Print what arrived and the final accuracy."""
    for name, options in CHANNELS.items():
        run = slimfl.Experiment(
            rounds=5,
            radio=slimfl.Radio(model=name, options=options),
            data=slimfl.Data(dataset="synthetic"),
            training=slimfl.Training(steps=10, learning_rate=5e-3),
        ).run(trust=["mylab"])
        print(name, run.final_accuracy)
        print("  segments that arrived, by round:", [line["delivered"] for line in run.lines])


if __name__ == "__main__":
    main()
