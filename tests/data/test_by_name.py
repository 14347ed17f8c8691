"""Datasets named in TOML: a folder of images, and torch datasets of a trusted module."""

import contextlib
import os
import textwrap

import numpy as np
import pytest
from PIL import Image

from slimfl.cli.app import main
from slimfl.data import Dataset, asked, load, load_section
from slimfl.errors import RequestError
from slimfl.experiment import DataSection
from slimfl.experiment.naming import trusting
from tests import asking


@pytest.fixture
def photos(tmp_path):
    """Three classes of 8 x 8 colour images: one channel is bright."""
    random = np.random.default_rng(1)
    for part, count in (("train", 20), ("test", 6)):
        for label, name in enumerate(("blue", "green", "red")):
            folder = tmp_path / "photos" / part / name
            folder.mkdir(parents=True)
            for number in range(count):
                pixels = random.integers(0, 90, (8, 8, 3), dtype=np.uint8)
                pixels[..., 2 - label] += 150
                Image.fromarray(pixels).save(folder / f"{number:03d}.png")
    return tmp_path / "photos"


TOML = """
rounds = 12
threads = 1
[data]
dataset = "folder"
dir = "{folder}"
partition = "iid"
options = {{ size = [6, 5] }}
[training]
steps = 8
learning_rate = 0.01
[federation]
devices = 2
[radio]
channel = "good"
"""


def test_a_run_on_a_folder_that_a_file_names(photos, tmp_path):
    file = tmp_path / "run.toml"
    file.write_text(TOML.format(folder=photos))
    run = asking.run(file, out=tmp_path / "out")
    assert run.final_accuracy["1.0x"] > 0.6  # a guess among three classes is 0.33
    data = load_section(run.experiment.data)
    assert data.train.images.shape == (60, 6, 5, 3)
    assert data.checksum == Dataset.from_folder(photos, size=(6, 5)).checksum
    # the images may move; others may not take their place
    moved = photos.rename(tmp_path / "moved")
    section = run.experiment.data.model_copy(update={"dir": moved})
    assert load_section(section).checksum == data.checksum


def test_the_path_alone_is_a_name_too(photos):
    by_path, by_name = load(str(photos)), load("folder", photos)
    assert by_path.checksum == by_name.checksum
    assert by_path.classes == 3
    small = load(str(photos), options={"size": [4, 4], "grey": True})
    assert small.train.images.shape == (60, 4, 4, 1)


def test_grey_is_pils_brightness(photos):
    first = sorted((photos / "train" / "blue").iterdir())[0]
    with Image.open(first) as opened:
        expected = np.asarray(opened.convert("L"))
    made = load("folder", photos, {"grey": True})
    np.testing.assert_array_equal(made.train.images[0, ..., 0], expected)


def test_the_folders_inside_may_have_other_names(photos):
    (photos / "test").rename(photos / "val")
    assert len(load("folder", photos, {"test": "val"}).test) == 18
    with pytest.raises(RequestError, match="there is no folder"):
        load("folder", photos)


def test_two_folders_are_two_datasets():
    one, other = (asked(DataSection(dataset="folder", dir=name)) for name in ("a", "b"))
    assert one != other


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"size": [32]}, r"data\.options\.size must be rows and columns"),
        ({"size": [0, 4]}, "from 1 to 1000"),
        ({"size": "32"}, "such as"),
        ({"size": [1e9, 4]}, "from 1 to 1000"),
        ({"test": "../elsewhere"}, "name of a folder inside"),
        ({"train": ".."}, "name of a folder inside"),
        ({"grey": 1}, "true or false"),
        ({"colour": True}, r"does not take data\.options"),
    ],
)
def test_options_that_are_none_are_refused_in_one_sentence(photos, options, words):
    with pytest.raises(RequestError, match=words) as refused:
        load("folder", photos, options)
    assert "\n" not in str(refused.value)


def test_a_folder_needs_its_place(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["slimfl", "run", "--set", "data.dataset=folder"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "needs data.dir" in " ".join(capsys.readouterr().err.split())


def test_a_pipe_among_the_images_is_passed_over(photos):
    os.mkfifo(photos / "train" / "red" / "zzz.png")
    assert len(load("folder", photos).train) == 60


def test_named_data_take_no_options():
    with pytest.raises(RequestError, match="'synthetic' takes none"):
        load("synthetic", options={"size": [4, 4]})


MODULE = """
    import torch
    from torch.utils.data import Dataset, TensorDataset

    class Stripes(Dataset):
        def __init__(self, train, classes=2, count=60):
            self.labels = torch.arange(count if train else 20) % classes
            self.classes = classes

        def __len__(self):
            return len(self.labels)

        def __getitem__(self, index):
            image = torch.zeros(1, 6, 6)
            image[0, :, int(self.labels[index])] = 1.0
            return image, int(self.labels[index])

    class Whole(Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return torch.zeros(1, 2, 2), 0

    class Broken(Stripes):
        def __getitem__(self, index):
            raise KeyError("no such file")

    def both(classes=3):
        return Stripes(True, classes), Stripes(False, classes)

    def three():
        return 1, 2, 3
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "striped.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.syspath_prepend(str(tmp_path))
    with trusting(["striped"]):
        yield


def test_a_torch_dataset_by_its_name_in_a_file(module, tmp_path, monkeypatch, capsys):
    file = tmp_path / "run.toml"
    file.write_text(
        'rounds = 2\nthreads = 1\n[data]\ndataset = "striped:Stripes"\n'
        'options = { classes = 3 }\npartition = "iid"\n[federation]\ndevices = 2\n'
        "[training]\nsteps = 2\n"
    )
    monkeypatch.delenv("SLIMFL_TRUST", raising=False)
    command = ["slimfl", "run", str(file), "--method", "slimfl", "--out", str(tmp_path / "runs")]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "--trust striped" in " ".join(capsys.readouterr().err.split())
    monkeypatch.setattr("sys.argv", [*command, "--trust", "striped"])
    with contextlib.suppress(SystemExit):
        main()
    assert list((tmp_path / "runs").rglob("metrics.jsonl"))


def test_training_and_test_samples_are_two_objects(module):
    made = load("striped:Stripes", options={"classes": 3, "count": 30})
    assert (len(made.train), len(made.test), made.classes) == (30, 20, 3)
    assert made.train.images[4, 0, :, 0].tolist() == [0, 255, 0, 0, 0, 0]
    pair = load("striped:both")
    assert (len(pair.train), len(pair.test)) == (60, 20)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Whole", "without the parameter train"),
        ("three", "returned a tuple"),
        ("Broken", "cannot be read .KeyError"),
        ("torch", "is not a class or function"),
    ],
)
def test_what_is_no_dataset_is_refused_in_one_sentence(module, name, words):
    with pytest.raises(RequestError, match=words) as refused:
        load(f"striped:{name}")
    assert "\n" not in str(refused.value)
