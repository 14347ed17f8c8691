"""The user's own data: arrays, torch datasets, folders of images, Hugging Face."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import IterableDataset, TensorDataset

from slimfl.data import Dataset, Samples, synthetic
from slimfl.errors import RequestError
from slimfl.round import Simulation
from tests import asking

RANDOM = np.random.default_rng(3)
BYTES = RANDOM.integers(0, 256, (20, 8, 6, 3), dtype=np.uint8)
LABELS = np.arange(20) % 4


def from_arrays(images, labels=LABELS, **more):
    return Dataset.from_arrays(images, labels, images[:8], labels[:8], **more)


def test_bytes_are_taken_as_they_are():
    made = from_arrays(BYTES)
    np.testing.assert_array_equal(made.train.images, BYTES)
    assert made.classes == 4
    assert made.train.labels.dtype == np.int64
    assert len(made.test) == 8


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_every_level_survives_as_a_float(kind):
    levels = np.arange(256, dtype=np.uint8).reshape(4, 8, 8)
    made = Dataset.from_arrays((levels / 255).astype(kind), [0, 1, 0, 1], levels[:1], [1])
    np.testing.assert_array_equal(made.train.images[..., 0], levels)
    assert made.test.images.shape == (1, 8, 8, 1)


def test_devices_may_be_named_by_words():
    images, labels = np.zeros((4, 2, 2), np.uint8), [0, 1, 0, 1]
    named = Dataset.from_arrays(images, labels, images, labels, holders=["eve", "bob", "eve", "al"])
    assert named.train.holders.tolist() == [2, 1, 2, 0]  # in the order of their names
    assert named.train.first(2).holders.tolist() == [2, 1]
    assert named.checksum != Dataset.from_arrays(images, labels, images, labels).checksum
    with pytest.raises(RequestError, match="3 holders for 4 training images"):
        Dataset.from_arrays(images, labels, images, labels, holders=[0, 1, 2])


def test_a_run_leaves_the_samples_with_their_devices():
    data = synthetic(train=60, test=20, size=6)
    own = Dataset.from_arrays(
        data.train.images, data.train.labels, data.test.images, data.test.labels,
        holders=np.arange(60) // 20,
    )  # fmt: skip
    (described,) = asking.load(None, data__partition="natural", federation__devices=3)
    sim = Simulation(described, dataset=own)
    assert sim.setting.partition.of(1).tolist() == list(range(20, 40))


def test_the_checksum_is_of_the_contents():
    changed = BYTES.copy()
    changed[3, 2, 1, 0] ^= 1
    assert from_arrays(BYTES).checksum == from_arrays(BYTES.copy()).checksum
    assert from_arrays(BYTES).checksum != from_arrays(changed).checksum
    assert from_arrays(BYTES).checksum != from_arrays(BYTES, LABELS[::-1]).checksum


@pytest.mark.parametrize(
    ("images", "labels", "words"),
    [
        (BYTES.astype(np.float32), LABELS, "values from 0 to 255; give bytes"),
        (BYTES / 255 - 0.5, LABELS, "slimfl normalises them itself"),
        (np.full((20, 4, 4), np.nan), LABELS, "values from nan"),
        (BYTES.astype(int) * 2, LABELS, "give bytes from 0 to 255"),
        (BYTES.astype(str), LABELS, "of type <U"),
        (BYTES[0, 0], LABELS, "have the shape"),
        (np.zeros((20, 3, 8, 8), np.uint8), LABELS, "channels first"),
        (BYTES, LABELS[:5], "20 images and 5"),
        (BYTES, LABELS - 1, "number the classes from 0"),
        (BYTES, LABELS + 0.5, "whole numbers from 0"),
        (BYTES, np.eye(4)[LABELS], "argmax"),
        ([[1, 2], [3]], LABELS, "not an array of numbers"),
    ],
)
def test_what_cannot_be_taken_is_refused_in_one_sentence(images, labels, words):
    with pytest.raises(RequestError, match=words) as refused:
        from_arrays(images, labels)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (BYTES / 255, "from_arrays"),
        (BYTES[..., 0], r"shape \(20, 8, 6\)"),
    ],
)
def test_samples_made_by_hand_are_checked_too(images, words):
    with pytest.raises(RequestError, match=words):
        Dataset("mine", Samples(images, LABELS), Samples(images, LABELS), 4, "")


def test_labels_beyond_the_classes_are_refused():
    with pytest.raises(RequestError, match="labels go from 0 to 3"):
        from_arrays(BYTES, classes=3)


def test_training_and_test_images_of_unlike_sizes_are_refused():
    with pytest.raises(RequestError, match="give both the same size"):
        Dataset.from_arrays(BYTES, LABELS, BYTES[:, :4], LABELS)


def test_torch_datasets_have_their_channels_first():
    tensors = torch.from_numpy(BYTES).permute(0, 3, 1, 2)
    for images in (tensors, tensors / 255):
        made = Dataset.from_torch(
            TensorDataset(images, torch.from_numpy(LABELS)),
            TensorDataset(images[:5], torch.from_numpy(LABELS[:5])),
        )
        np.testing.assert_array_equal(made.train.images, BYTES)
        np.testing.assert_array_equal(made.test.labels, LABELS[:5])


def test_torchvision_without_a_transform_gives_pil_images():
    pictures = [(Image.fromarray(pixels), int(k)) for pixels, k in zip(BYTES, LABELS, strict=True)]
    np.testing.assert_array_equal(Dataset.from_torch(pictures, pictures).train.images, BYTES)
    grey = [
        (Image.fromarray(pixels[..., 0]), k) for (_, k), pixels in zip(pictures, BYTES, strict=True)
    ]
    made = Dataset.from_torch(grey, grey)
    np.testing.assert_array_equal(made.train.images, BYTES[..., :1])


class Endless(IterableDataset):
    def __iter__(self):
        yield torch.zeros(1, 4, 4), 0


@pytest.mark.parametrize(
    ("dataset", "words"),
    [
        (Endless(), "without a length"),
        (TensorDataset(torch.zeros(3, 1, 4, 4)), "image, label"),
        ([(np.zeros((4, 4)), 0), (np.zeros((5, 4)), 1)], "image 1 of train is 5 x 4 x 1"),
        ([(torch.full((1, 4, 4), -0.4), 0)], "values from -0.4"),
        ([], "no images"),
        ([(np.zeros((4, 4)), "cat")], "label of image 0"),
    ],
)
def test_torch_datasets_that_do_not_fit_are_refused(dataset, words):
    with pytest.raises(RequestError, match=words):
        Dataset.from_torch(dataset, dataset)


def write_folder(root, shape=(8, 6)):
    for part in ("train", "test"):
        for label, name in enumerate(("cat", "dog")):
            (root / part / name).mkdir(parents=True)
            for number in range(3):
                pixels = np.full((*shape, 3), 40 * label + number, np.uint8)
                Image.fromarray(pixels).save(root / part / name / f"{number}.png")
    (root / "train" / "cat" / "notes.txt").write_text("no image")


def test_a_folder_of_images(tmp_path):
    write_folder(tmp_path)
    made = Dataset.from_folder(tmp_path)
    assert made.train.images.shape == (6, 8, 6, 3)
    assert made.train.images[:, 0, 0, 0].tolist() == [0, 1, 2, 40, 41, 42]
    assert made.train.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert made.classes == 2
    assert Dataset.from_folder(tmp_path, size=(4, 5)).test.images.shape == (6, 4, 5, 3)


def test_large_images_are_refused_before_they_are_decoded(tmp_path, monkeypatch):
    image = pytest.importorskip("PIL.Image")
    for name in ("train", "test"):
        (tmp_path / name / "a").mkdir(parents=True)
        image.new("1", (9000, 9000)).save(tmp_path / name / "a" / "it.png")
    decoded = []
    monkeypatch.setattr(image.Image, "convert", lambda self, mode: decoded.append(mode))
    with pytest.raises(RequestError, match="9000 x 9000"):
        Dataset.from_folder(tmp_path)
    assert not decoded


def test_a_folder_that_is_none_or_damaged_is_refused(tmp_path):
    with pytest.raises(RequestError, match="train/CLASS/"):
        Dataset.from_folder(tmp_path / "nowhere")
    write_folder(tmp_path)
    (tmp_path / "test" / "fox").mkdir()
    with pytest.raises(RequestError, match="fox"):
        Dataset.from_folder(tmp_path)
    (tmp_path / "test" / "fox").rmdir()
    (tmp_path / "train" / "dog" / "1.png").write_bytes(b"\x89PNG and then nothing")
    with pytest.raises(RequestError, match=r"1\.png cannot be read as an image"):
        Dataset.from_folder(tmp_path)
    Image.fromarray(np.zeros((3, 3), np.uint8)).save(tmp_path / "train" / "dog" / "1.png")
    with pytest.raises(RequestError, match="all images must have the same size"):
        Dataset.from_folder(tmp_path)


class Split:
    """What is used of a `datasets.Dataset`."""

    def __init__(self, image, label):
        self.column_names = [image, label]

    def __len__(self):
        return len(BYTES)

    def __getitem__(self, index):
        image, label = self.column_names
        return {image: Image.fromarray(BYTES[index]), label: int(LABELS[index])}


def test_a_hugging_face_dataset():
    made = Dataset.from_huggingface({"train": Split("img", "label"), "test": Split("img", "label")})
    np.testing.assert_array_equal(made.train.images, BYTES)
    np.testing.assert_array_equal(made.train.labels, LABELS)
    odd = {"train": Split("scan", "finding"), "validation": Split("scan", "finding")}
    with pytest.raises(RequestError, match="no split 'test'"):
        Dataset.from_huggingface(odd)
    with pytest.raises(RequestError, match="scan, finding; give image="):
        Dataset.from_huggingface(odd, test="validation")
    made = Dataset.from_huggingface(odd, test="validation", image="scan", label="finding")
    assert made.classes == 4


def test_the_hub_needs_an_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(RequestError, match=r"datasets is not installed.*'\.\[huggingface\]'"):
        Dataset.from_huggingface("ylecun/mnist")


def test_other_objects_than_a_dataset_say_how_to_make_one():
    data = TensorDataset(torch.zeros(3, 1, 4, 4), torch.zeros(3))
    with pytest.raises(RequestError, match=r"Dataset\.from_torch"):
        asking.run(dataset=data, rounds=1)
    with pytest.raises(RequestError, match=r"Dataset\.from_arrays"):
        asking.run(dataset=(BYTES, LABELS), rounds=1)


def test_a_run_on_data_from_arrays_learns():
    labels = np.arange(400) % 2
    images = RANDOM.uniform(0, 0.3, (400, 8, 8)) + 0.6 * labels[:, None, None]
    images = (255 * images).round().astype(np.uint8)
    data = Dataset.from_arrays(images[:300], labels[:300], images[300:], labels[300:])
    run = asking.run(
        dataset=data,
        rounds=3,
        training__steps=10,
        training__learning_rate=5e-3,
        radio__channel="good",
    )
    assert min(run.final_accuracy.values()) > 0.95


def labelled(train, test, **options):
    def images(labels):
        return np.zeros((len(labels), 2, 2), np.uint8)

    return Dataset.from_arrays(images(train), train, images(test), test, **options)


@pytest.mark.parametrize(
    ("train", "test", "words"),
    [
        (range(1, 11), range(1, 11), "go from 1 to 10 and none is 0; number the classes"),
        ([0, 1, 3], [0], "none is 2"),
        ([0, 10**9], [0], "none is 1"),
        ([0, 1], [0, 1, 2], "the test labels contain 2, which no training label is"),
    ],
)
def test_labels_that_leave_the_number_of_classes_open_are_refused(train, test, words):
    with pytest.raises(RequestError, match=words) as caught:
        labelled(list(train), list(test))
    assert "classes=..." in str(caught.value)
    assert labelled(list(train), list(test), classes=10**9 + 1).classes == 10**9 + 1


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_numbers_between_the_levels_of_bytes_are_refused(kind):
    images = RANDOM.random((4, 3, 3)).astype(kind)
    with pytest.raises(RequestError, match="stores images as bytes; round them yourself"):
        Dataset.from_arrays(images, [0, 1, 0, 1], images, [0, 1, 0, 1])
    rounded = (255 * images).round().astype("uint8")
    Dataset.from_arrays(rounded, [0, 1, 0, 1], rounded, [0, 1, 0, 1])
