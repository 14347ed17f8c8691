"""Run SlimFL over your own channels, each given by its name."""

import slimfl

CHANNELS = {
    "mylab.drifting:DriftingFading": {"correlation": 0.9},
    "mylab.bit_errors:BitErrors": {"flip_probability": 0.001},
}


def main() -> None:
    """Print what arrived and the final accuracy."""
    for name, options in CHANNELS.items():
        run = slimfl.run(
            radio__model=name,
            radio__options=options,
            data__dataset="synthetic",
            rounds=5,
            training__steps=10,
            training__learning_rate=5e-3,
        )
        print(name, run.final_accuracy)
        print("  segments that arrived, by round:", [line["delivered"] for line in run.lines])


if __name__ == "__main__":
    main()
