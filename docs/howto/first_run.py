"""A first run from Python: SlimFL and Vanilla FL on synthetic data."""

import slimfl


def main() -> None:
    """Run two methods under one seed and print the accuracy of every width."""
    for method in ("slimfl", "vanilla-1.0x"):
        run = slimfl.Experiment(
            method=method,
            seed=1,
            rounds=10,
            training=slimfl.Training(steps=10, learning_rate=5e-3),
            data=slimfl.Data(dataset="synthetic", alpha=1.0),
            radio=slimfl.Radio(channel="poor"),
        ).run()
        for width, accuracy in run.final_accuracy.items():
            print(f"{method:14} {width}: {accuracy:.1%} of the test set")

    # the network of the last run is an ordinary torch module; `at_width` chooses its width
    with slimfl.nn.at_width(1.0):
        print(type(run.network).__name__, "has", len(run.parameters), "parameters at 1.0x")


if __name__ == "__main__":
    main()
