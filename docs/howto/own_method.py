"""Run your own method by its name, and SlimFL under the same seed."""

import slimfl

OWN = {"method": "mylab.momentum:CappedMomentum", "method_options": {"weak": 4, "momentum": 0.5}}


def main() -> None:
    """Both methods see the same devices, batches and gains."""
    data, work = slimfl.Data(dataset="synthetic"), slimfl.Training(steps=10, learning_rate=5e-3)
    common = slimfl.Experiment(rounds=5, seed=3, data=data, training=work)
    for method in ({"method": "slimfl"}, OWN):
        run = common.change(**method).run(trust=["mylab"])
        print(run.experiment.method, run.final_accuracy)
        print("  segments that arrived, by round:", [line["delivered"] for line in run.lines])


if __name__ == "__main__":
    main()
