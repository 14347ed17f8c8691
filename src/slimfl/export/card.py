"""The model card: what users should know before they use the files."""

from __future__ import annotations

from slimfl.export.manifest import Manifest, Model

CARD = "README.md"


def model_card(manifest: Manifest) -> str:
    """The card as Markdown."""
    run, input_ = manifest.run, manifest.input
    normalisation = input_.normalisation
    parts = [
        f"# {manifest.model}",
        f"One network at {_count(len({model.width for model in manifest.models}), 'width')}, "
        f"trained by federated learning (method {_code(run.method)}, seed {run.seed}, "
        f"{_count(run.round, 'round')}) on {_code(run.dataset)}. Every file is a sub-network of "
        "the same model that works on its own.",
        "## Which file",
        _table(manifest),
        f"Accuracy is measured on {run.test_images:,} test images with the exported network. "
        f"Energy is multiply-adds times the preset {_code(manifest.energy.preset)} "
        f"({manifest.energy.source}): a convention, not a measurement."
        + (
            f" Latency is the median of one image in {manifest.latency.runtime} on one thread of "
            "the machine that exported."
            if manifest.latency
            else ""
        ),
        "## Input and output",
        f"`{input_.name}`: unsigned bytes [batch, {input_.channels}, {input_.rows}, "
        f"{input_.columns}] (batch, channel, row, column), raw pixel values from 0 to 255. "
        f"`logits`: {manifest.classes} numbers per image; the largest is the class.",
        "The ONNX and torch files normalise the pixels themselves. With a safetensors file alone, "
        "compute `(pixels / 255 - mean) / deviation` first, with mean "
        f"{normalisation.mean} and deviation {normalisation.deviation} per channel.",
        "## Limits",
        "The numbers hold for images like the test images. Each device's data shaped the model; "
        "whether it is private depends on the run's settings, not on this export.",
        "## Origin",
        f"Experiment `{run.experiment_sha256}`, data `{run.data_sha256[:64]}`. "
        "`manifest.json` has all of this for programs.",
    ]
    return "\n\n".join(parts) + "\n"


def _table(manifest: Manifest) -> str:
    head = (
        "| model | parameters | multiply-adds | accuracy | energy per image | latency | files |\n"
        "|---|--:|--:|--:|--:|--:|---|"
    )
    return "\n".join([head, *(_row(model) for model in manifest.models)])


def _row(model: Model) -> str:
    loss = model.accuracy_loss_points
    accuracy = f"{100 * model.accuracy:.2f}%"
    if loss is not None:
        accuracy += f" ({-loss:+.2f} points)"
    latency = "–" if model.latency_ms is None else f"{model.latency_ms:.3g} ms"
    files = ", ".join(f"`{file.name}` ({file.bytes:,} bytes)" for file in model.files)
    return (
        f"| {model.name} | {model.parameters:,} | {model.multiply_adds:,} | {accuracy} | "
        f"{microjoules(model.joules_per_image)} | {latency} | {files} |"
    )


def microjoules(joules: float) -> str:
    """The energy of an image for readers.

    >>> microjoules(4.3e-6), microjoules(3.1e-3)
    ('4.3 µJ', '3100 µJ')
    """
    value = 1e6 * joules
    return f"{value:.0f} µJ" if value >= 100 else f"{value:.3g} µJ"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _code(text: str) -> str:
    """A name that may come from a stranger, as code, so that it cannot act as Markdown."""
    shown = "".join(c if c.isprintable() and c != "`" else "?" for c in text)
    return f"`{shown}`"
