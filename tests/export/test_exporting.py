"""Exported files compute the same as the run's network, without slimfl."""

import dataclasses
import hashlib
import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from slimfl.data import load
from slimfl.errors import RequestError, RunError
from slimfl.experiment import round_identity
from slimfl.export.exporting import export, model_card
from slimfl.export.manifest import MANIFEST, Manifest, read_manifest
from slimfl.export.trained import load_trained
from slimfl.nn import ULMobileNet, at_width, multiply_adds, segments, standalone
from slimfl.round import Callback
from slimfl.training import Images
from tests import asking
from tests.export.conftest import SMALL
from tests.networks import Residual


def expected_logits(finished, width):
    """The slimmable network itself, on images normalised as in training."""
    data = load("synthetic")
    data = type(data)(
        data.name, data.train.first(400), data.test, data.classes, data.checksum
    )  # the moments are those of the training images used
    images = Images(data.test, *data.normalisation(finished.experiment.data.normalise))
    with at_width(width), torch.no_grad():
        logits = finished.network(images.batch(slice(None))[0])
    return logits.numpy(), data.test


def bytes_in(samples):
    return np.ascontiguousarray(samples.images.transpose(0, 3, 1, 2))


def run_onnx(onnxruntime, path, images):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["logits"], {"images": images})[0]


@pytest.mark.parametrize("width", [0.5, 1.0])
def test_onnx_runtime_agrees_and_has_the_accuracy_of_the_metrics_to_the_digit(
    finished, exported, onnxruntime, width
):
    manifest, folder = exported
    expected, test = expected_logits(finished, width)
    found = run_onnx(onnxruntime, folder / f"ul-mobilenet-{width}x.onnx", bytes_in(test))
    assert np.abs(found - expected).max() <= 1e-5 * max(1, np.abs(expected).max())
    right = int((found.argmax(1) == test.labels).sum())
    assert right / len(test) == finished.final_accuracy[f"{width}x"]
    (model,) = [m for m in manifest.models if (m.width, m.precision) == (width, "float32")]
    assert model.accuracy == model.run_accuracy == finished.final_accuracy[f"{width}x"]
    # a graph for any number of images, also for one
    one = run_onnx(onnxruntime, folder / f"ul-mobilenet-{width}x.onnx", bytes_in(test)[:1])
    np.testing.assert_allclose(one, found[:1], rtol=1e-5, atol=1e-5)


def test_an_onnx_file_holds_the_width_s_weights_and_no_more(exported, onnxruntime):
    import onnx

    _, folder = exported
    sizes = {}
    for width, count in ((0.5, 1530), (1.0, 4586)):
        path = folder / f"ul-mobilenet-{width}x.onnx"
        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        weights = [i for i in model.graph.initializer if i.name.startswith("network.")]
        assert sum(int(np.prod(i.dims)) for i in weights) == count
        sizes[width] = path.stat().st_size
        text = path.read_bytes()
        assert b".py" not in text  # stack traces
        assert b"slimfl" not in text
    assert sizes[0.5] < 0.4 * sizes[1.0]


def test_the_manifest_says_what_there_is(finished, exported):
    manifest, folder = exported
    assert read_manifest(folder) == manifest
    assert manifest.run.experiment_sha256 == round_identity(finished.experiment)
    assert (manifest.run.round, manifest.run.seed, manifest.run.test_images) == (3, 5, 500)
    cut = segments(finished.network, (0.5, 1.0))
    assert [(m.width, m.precision) for m in manifest.models] == [
        (0.5, "float32"), (0.5, "int8"), (1.0, "float32"), (1.0, "int8"),
    ]  # fmt: skip
    for model in manifest.models:
        assert model.parameters == cut.mask(model.width).sum()
        work = multiply_adds(finished.network, model.width, (1, 12, 12))
        assert model.multiply_adds == work
        joule = 4.6e-12 if model.precision == "float32" else 0.3e-12
        assert model.joules_per_image == pytest.approx(work * joule)
        assert model.latency_ms > 0
        # the head's bias is the only one
        assert (
            model.bits
            == (32 if model.precision == "float32" else 8) * (model.parameters - 10) + 32 * 10
        )
        for file in model.files:
            contents = (folder / file.name).read_bytes()
            assert file.bytes == len(contents)
            assert file.sha256 == hashlib.sha256(contents).hexdigest()
    listed = {file.name for model in manifest.models for file in model.files}
    assert "horowitz-45nm" in (folder / "accuracy-energy.svg").read_text()
    on_disk = {path.name for path in folder.iterdir()}
    assert on_disk == listed | {"manifest.json", "README.md", "accuracy-energy.svg"}


def test_int8_loss_is_what_onnx_runtime_shows(exported, onnxruntime):
    manifest, folder = exported
    test = load("synthetic").test
    by = {(model.width, model.precision): model for model in manifest.models}
    for width in (0.5, 1.0):
        path = folder / f"ul-mobilenet-{width}x-int8.onnx"
        found = run_onnx(onnxruntime, path, bytes_in(test))
        accuracy = (found.argmax(1) == test.labels).mean()
        assert by[width, "int8"].accuracy == accuracy
        lost = 100 * (by[width, "float32"].accuracy - accuracy)
        assert by[width, "int8"].accuracy_loss_points == pytest.approx(lost, abs=1e-6)
        assert abs(lost) < 10  # quantised, not destroyed
        full = run_onnx(onnxruntime, folder / f"ul-mobilenet-{width}x.onnx", bytes_in(test))
        assert np.abs(found - full).max() > 1e-5  # and quantised indeed


def test_int8_weights_are_bytes_with_a_scale_per_channel(exported):
    import onnx
    from onnx import TensorProto, numpy_helper

    _, folder = exported
    model = onnx.load(folder / "ul-mobilenet-0.5x-int8.onnx")
    arrays = {i.name: i for i in model.graph.initializer}
    for name in ("stem", "depthwise1", "pointwise1", "depthwise2", "pointwise2"):
        weights = arrays[f"network.{name}.weight_quantized"]
        assert weights.data_type == TensorProto.INT8
        scales = numpy_helper.to_array(arrays[f"network.{name}.weight_scale"])
        assert scales.shape == (weights.dims[0],)


def test_calibration_is_on_training_images_by_the_seed(finished, onnxruntime):
    from slimfl.export import onnx_file

    trained = load_trained(finished.folder)
    chosen = onnx_file.calibration_images(trained)
    known = {image.tobytes() for image in trained.dataset.train.images}
    assert len(chosen) == 400  # all there are; 512 at most
    assert {image.transpose(1, 2, 0).tobytes() for image in chosen} <= known
    assert np.array_equal(chosen, onnx_file.calibration_images(trained))


def test_an_export_is_the_same_every_time(finished, exported, tmp_path):
    manifest, _ = exported
    again = export(finished.folder, tmp_path / "again", int8=True)
    first = {f.name: f.sha256 for m in manifest.models for f in m.files if f.format == "onnx"}
    assert {f.name: f.sha256 for m in again.models for f in m.files} == first


def test_safetensors_are_the_leading_blocks_under_the_network_s_names(finished, exported):
    _, folder = exported
    found = load_file(folder / "ul-mobilenet-0.5x.safetensors")
    whole = finished.network.state_dict()
    assert sorted(found) == sorted(whole)
    for name, value in found.items():
        block = whole[name].numpy()[tuple(slice(0, size) for size in value.shape)]
        assert np.array_equal(value, block)
    assert sum(value.size for value in found.values()) == 1530
    # the plain layers of torch, for who wants to go on from there
    plain = standalone(ULMobileNet(in_channels=1), 0.5)
    plain.load_state_dict({name: torch.from_numpy(value) for name, value in found.items()})
    data = load("synthetic")
    mean, deviation = (
        exported[0].input.normalisation.mean,
        exported[0].input.normalisation.deviation,
    )
    images = (torch.from_numpy(bytes_in(data.test)) / 255 - mean[0]) / deviation[0]
    with torch.no_grad():
        logits = plain(images).numpy()
    np.testing.assert_allclose(logits, expected_logits(finished, 0.5)[0], rtol=1e-4, atol=1e-5)


def test_the_cascade_runs_from_the_narrow_width_to_the_full_one(exported):
    manifest, _ = exported
    by = {m.width: m for m in manifest.models if m.precision == "float32"}
    first, last = manifest.cascade[0], manifest.cascade[-1]
    assert (first.full_share, first.accuracy) == (0, by[0.5].accuracy)
    assert first.joules_per_image == by[0.5].joules_per_image
    shares = [row.full_share for row in manifest.cascade]
    assert shares == sorted(shares)
    for row in manifest.cascade:
        cost = by[0.5].joules_per_image + row.full_share * by[1.0].joules_per_image
        assert row.joules_per_image == pytest.approx(cost)
    assert last.full_share > 0.5


def test_no_file_is_a_pickle_or_a_zip(exported):
    _, folder = exported
    for path in folder.iterdir():
        assert not path.read_bytes().startswith((b"PK", b"\x80"))


def test_one_width_and_weights_alone(finished, tmp_path):
    manifest = export(finished.folder, tmp_path / "half", widths=(0.5,), formats=["safetensors"])
    assert [model.name for model in manifest.models] == ["ul-mobilenet-0.5x"]
    assert manifest.models[0].accuracy == finished.final_accuracy["0.5x"]
    assert manifest.cascade == []
    assert manifest.latency is None


def test_a_network_of_its_author_s_own_is_given_again(onnxruntime, tmp_path):
    torch.manual_seed(0)
    finished = asking.run(out=tmp_path / "run", network=Residual(8, classes=10), **SMALL)
    with pytest.raises(RequestError, match=r"network object .*Residual"):
        export(finished.folder, tmp_path / "out")
    with pytest.raises(RequestError, match="another network"):
        export(finished.folder, tmp_path / "out", network=Residual(12, classes=10))
    assert not (tmp_path / "out").exists()
    manifest = export(
        finished.folder,
        tmp_path / "out",
        network=Residual(8, classes=10),
        formats=["onnx", "safetensors"],
        int8=True,
    )
    for width in (0.5, 1.0):
        expected, test = expected_logits(finished, width)
        path = tmp_path / "out" / f"Residual-{width}x.onnx"
        found = run_onnx(onnxruntime, path, bytes_in(test))
        assert np.abs(found - expected).max() <= 1e-5 * max(1, np.abs(expected).max())
    floats = [model for model in manifest.models if model.precision == "float32"]
    assert [model.accuracy for model in floats] == list(finished.final_accuracy.values())


def test_a_run_with_the_network_it_names_takes_no_other(finished, tmp_path):
    with pytest.raises(RequestError, match="omit network"):
        export(
            finished.folder,
            tmp_path / "out",
            network=Residual(8, classes=10),
            formats=["safetensors"],
        )


def copied(finished, tmp_path):
    return shutil.copytree(finished.folder, tmp_path / "copy")


@pytest.fixture
def checkpoint_with(finished, tmp_path):
    """A copy of the run whose checkpoints hold other weights, with a checksum that fits."""
    from safetensors import safe_open

    from slimfl.runs.storage.checkpoint import _digest

    def make(change):
        folder = copied(finished, tmp_path)
        for path in (folder / "checkpoints").glob("round-*"):
            with safe_open(path, "numpy") as file:
                state = file.metadata()["state"]
            tensors = load_file(path)
            tensors["global"] = change(tensors["global"])
            save_file(tensors, path, {"state": state, "sha256": _digest(state, tensors)})
        return folder

    return make


def test_a_diverged_model_is_not_exported(checkpoint_with, tmp_path):
    folder = checkpoint_with(lambda weights: np.where(weights == weights[7], np.nan, weights))
    with pytest.raises(RequestError, match="not finite"):
        export(folder, tmp_path / "out", formats=["safetensors"])


def test_weights_of_another_network_are_refused(checkpoint_with, tmp_path):
    folder = checkpoint_with(lambda weights: weights[:-1])
    with pytest.raises(RequestError, match="does not fit"):
        export(folder, tmp_path / "out", formats=["safetensors"])


def test_other_data_is_refused(finished, tmp_path):
    folder = copied(finished, tmp_path)
    text = (folder / "experiment.toml").read_text()
    checksum = load("synthetic").checksum
    assert checksum in text
    (folder / "experiment.toml").write_text(text.replace(checksum, "0" * len(checksum)))
    with pytest.raises(RequestError, match=r"different .* data"):
        export(folder, tmp_path / "out", formats=["safetensors"])


def test_a_round_that_was_not_evaluated_has_no_accuracy_of_the_run(tmp_path):
    class StopAfterTwo(Callback):
        def on_round(self, record, model):
            return record.round == 2

    values = {**SMALL, "rounds": 6, "federation__evaluate_every": 5}
    finished = asking.run(out=tmp_path / "run", callbacks=[StopAfterTwo()], **values)
    assert len(finished.lines) == 2
    manifest = export(finished.folder, tmp_path / "out", formats=["safetensors"])
    assert [model.run_accuracy for model in manifest.models] == [None, None]
    expected, test = expected_logits(finished, 0.5)
    assert manifest.models[0].accuracy == (expected.argmax(1) == test.labels).mean()


def test_a_file_that_differs_from_pytorch_is_never_written(
    finished, onnxruntime, tmp_path, monkeypatch
):
    from slimfl.export import onnx_file

    right = onnx_file.onnx_model

    def wrong(network, image_shape):
        with torch.no_grad():
            next(network.parameters()).mul_(1.001)
        return right(network, image_shape)

    monkeypatch.setattr(onnx_file, "onnx_model", wrong)
    with pytest.raises(RunError, match="differs from PyTorch"):
        export(finished.folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("width", [0.5, 1.0])
def test_a_width_that_was_never_trained_is_not_exported(tmp_path, width):
    run = asking.run(out=tmp_path / "run", method=f"vanilla-{width}x", **SMALL)
    manifest = export(run.folder, tmp_path / "out", formats=["safetensors"])
    assert [model.width for model in manifest.models] == [width]
    assert manifest.models[0].accuracy == run.final_accuracy[f"{width}x"]
    other = 1.5 - width
    with pytest.raises(RequestError, match=rf"trained no width {other}; choose from {width}"):
        export(run.folder, tmp_path / "other", widths=(other,), formats=["safetensors"])
    assert not (tmp_path / "other").exists()


def test_an_export_is_not_overwritten(finished, exported):
    _, folder = exported
    before = (folder / MANIFEST).read_bytes()
    with pytest.raises(RequestError, match="already"):
        export(finished.folder, folder, formats=["safetensors"])
    assert (folder / MANIFEST).read_bytes() == before


def test_a_missing_extra_is_named(finished, tmp_path, monkeypatch):
    from importlib.util import find_spec

    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "onnxscript" else find_spec(name)
    )
    with pytest.raises(RequestError, match=r"onnxscript is not installed.*\.\[export\]"):
        export(finished.folder, tmp_path / "out")


def test_names_of_a_stranger_s_choosing_stay_names(finished, exported):
    """A model's name becomes a file name and Python text; a dataset's name becomes Markdown."""
    trained = load_trained(finished.folder)
    for name in ("a:../../x", 'a:b"""\nimport os', "a:;rm -rf", "a:..", "a:\x00", "a:" + "x" * 500):
        section = trained.experiment.model.model_copy(update={"name": name})
        experiment = trained.experiment.model_copy(update={"model": section})
        made = dataclasses.replace(trained, experiment=experiment).model_name
        assert made
        assert len(made) <= 60
        assert set(made) <= set("abcdefghijklmnopqrstuvwxyz.-ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
        assert not made.startswith(".")
    manifest, _ = exported
    run = manifest.run.model_copy(update={"dataset": "x`\n\n# <script>"})
    card = model_card(manifest.model_copy(update={"run": run}))
    assert "`x???# <script>`" in card
    assert "\n# <script>" not in card


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.pop("models"),
        lambda m: m.update(models=[]),
        lambda m: m["models"][0].update(accuracy=2),
        lambda m: m["models"][0].update(joules_per_image=float("nan")),
        lambda m: m["models"][0]["files"][0].update(name="../../etc/passwd"),
        lambda m: m.update(version=2),
        lambda m: m.update(more="x"),
    ],
)
def test_a_manifest_of_somebody_else_s_making_is_checked(exported, tmp_path, change):
    document = json.loads((exported[1] / MANIFEST).read_text())
    Manifest.model_validate(document)
    change(document)
    (tmp_path / MANIFEST).write_text(json.dumps(document))
    with pytest.raises(RequestError, match="manifest"):
        read_manifest(tmp_path)


def test_what_is_no_manifest_at_all(tmp_path):
    for text in ("", "[" * 100_000, "{}", "x" * 1_000_001):
        (tmp_path / MANIFEST).write_text(text)
        with pytest.raises(RequestError, match=r"manifest\.json"):
            read_manifest(tmp_path)
