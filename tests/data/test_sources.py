"""Sources of data: their order, checksums, own folders, clear errors."""

import gzip
import http.client
import io
from pathlib import Path

import numpy as np
import pytest

from slimfl.data import SOURCES, load, locate
from slimfl.data.sources import FILES
from slimfl.errors import RequestError


def packed_files(arrays, to_idx):
    return {f"{n}.gz": gzip.compress(to_idx(a)) for n, a in zip(FILES, arrays, strict=True)}


@pytest.fixture
def download(monkeypatch):
    """Let the official address answer with the given files; gives the list of asked addresses."""

    def answer_with(files):
        asked = []

        def urlopen(address, *_, **__):
            asked.append(str(address))
            name = asked[-1].rpartition("/")[2]
            if name not in files:
                raise OSError("404")
            return io.BytesIO(files[name])

        monkeypatch.setattr("urllib.request.urlopen", urlopen)
        return asked

    return answer_with


# own folders


@pytest.mark.parametrize("packed", [False, True])
def test_an_own_folder_is_read_as_it_is(tmp_path, tiny, write, packed):
    dataset = load(str(write(tmp_path / "mine", tiny.arrays, packed)))
    assert dataset.name == "mine"
    assert dataset.classes == 3
    assert dataset.train.images.shape == (30, 5, 4, 1)
    assert np.array_equal(dataset.train.images[..., 0], tiny.train_images)
    assert np.array_equal(dataset.train.labels, tiny.train_labels)
    assert np.array_equal(dataset.test.images[..., 0], tiny.test_images)
    assert np.array_equal(dataset.test.labels, tiny.test_labels)
    assert dataset.train.labels.dtype == np.int64


def test_colour_images_keep_their_channels(tmp_path, write):
    images = np.random.default_rng(0).integers(0, 256, (6, 4, 5, 3), dtype=np.uint8)
    labels = np.arange(6)
    dataset = load(str(write(tmp_path / "colour", (images, labels, images[:2], labels[:2]))))
    assert np.array_equal(dataset.train.images, images)
    assert dataset.classes == 6


def test_a_device_may_lack_classes_and_a_dataset_may_not(tmp_path, tiny, write):
    arrays = (tiny.train_images, tiny.train_labels, tiny.test_images, np.full(12, 7))
    folder = str(write(tmp_path / "mine", arrays))
    with pytest.raises(RequestError, match="the test labels contain 7, which no training label is"):
        load(folder)
    assert load(folder, one_device=True).classes == 8


def test_the_checksum_follows_the_contents_and_not_the_packing(tmp_path, tiny, write):
    plain = load(str(write(tmp_path / "plain", tiny.arrays)))
    packed = load(str(write(tmp_path / "packed", tiny.arrays, packed=True)))
    assert plain.checksum == packed.checksum
    for position in range(4):
        changed = [array.copy() for array in tiny.arrays]
        changed[position].flat[0] ^= 1
        other = load(str(write(tmp_path / f"changed{position}", changed)))
        assert other.checksum != plain.checksum


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda a: (a[0][:-1], *a[1:]), "one label per image"),
        (lambda a: (a[0][..., None][..., :0], *a[1:]), "at least 1"),
        (lambda a: (a[0][:, :0], *a[1:]), "at least 1"),
        (lambda a: (a[0].reshape(30, 20), *a[1:]), "one label per image"),
        (lambda a: (a[0], a[1].reshape(15, 2), *a[2:]), "one label per image"),
        (lambda a: (a[0], a[1], a[2][:, :4], a[3]), "differ in size"),
        (lambda a: (a[0][:0], a[1][:0], *a[2:]), "no samples"),
    ],
)
def test_an_own_folder_that_does_not_fit_together_is_refused(tmp_path, tiny, write, spoil, words):
    folder = write(tmp_path / "mine", spoil(tiny.arrays))
    with pytest.raises(RequestError, match=words) as caught:
        load(str(folder))
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("missing", FILES)
def test_an_own_folder_with_a_file_missing_is_refused_with_the_files_name(
    tmp_path, tiny, write, missing
):
    folder = write(tmp_path / "mine", tiny.arrays)
    (folder / missing).unlink()
    with pytest.raises(RequestError, match=missing):
        load(str(folder))


def test_an_unknown_dataset_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(RequestError) as caught:
        load("cifar-1000")
    for name in ("cifar-1000", "fashion-mnist", "mnist", "synthetic", "folder"):
        assert name in str(caught.value)


# the order of the places


def test_places_are_tried_in_the_documented_order(tmp_path, tiny, write, named, monkeypatch):
    """--data-dir, then SLIMFL_DATA, then the cache; nothing is fetched while one of them has it."""
    given = write(tmp_path / "given", tiny.arrays)
    environment = write(tmp_path / "environment", tiny.arrays)
    write(named, tiny.arrays)
    monkeypatch.setenv("SLIMFL_DATA", str(environment))
    assert locate("tiny", given) == given
    assert locate("tiny") == environment
    monkeypatch.delenv("SLIMFL_DATA")
    assert locate("tiny") == named


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_a_data_folder_may_hold_the_files_or_a_folder_of_the_datasets_name(
    tmp_path, tiny, write, named, monkeypatch, how
):
    folder = tmp_path / "data"
    if how == "environment":
        monkeypatch.setenv("SLIMFL_DATA", str(folder))
    argument = folder if how == "argument" else None
    write(folder, tiny.arrays, packed=True)
    assert locate("tiny", argument) == folder
    write(folder / "tiny", tiny.arrays)
    assert locate("tiny", argument) == folder / "tiny"


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_a_chosen_folder_without_the_files_is_an_error_and_not_passed_over(
    tmp_path, tiny, write, named, monkeypatch, how
):
    write(named, tiny.arrays)
    empty = tmp_path / "empty"
    empty.mkdir()
    if how == "environment":
        monkeypatch.setenv("SLIMFL_DATA", str(empty))
    with pytest.raises(RequestError) as caught:
        locate("tiny", empty if how == "argument" else None)
    assert str(empty) in str(caught.value)
    assert "--data-dir" in str(caught.value)


def test_an_empty_slimfl_data_counts_as_unset(tiny, write, named, monkeypatch):
    write(named, tiny.arrays)
    monkeypatch.setenv("SLIMFL_DATA", "")
    assert locate("tiny") == named


def test_a_data_folder_in_the_home_folder_is_found(tmp_path, tiny, write, named, monkeypatch):
    """A shell leaves the tilde alone in TOML files and in --set data.dir=~/data."""
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / "data", tiny.arrays)
    assert len(load("tiny", Path("~/data")).train) == 30


def test_an_incomplete_cache_is_passed_over(tiny, write, named, to_idx, download):
    write(named, tiny.arrays)
    (named / FILES[3]).unlink()
    download(packed_files(tiny.arrays, to_idx))
    assert len(load("tiny").test) == 12


# fetching


def test_a_download_fills_the_cache_and_is_not_repeated(tiny, named, to_idx, download):
    asked = download(packed_files(tiny.arrays, to_idx))
    assert np.array_equal(load("tiny").train.images[..., 0], tiny.train_images)
    assert asked == [f"http://data.invalid/{name}.gz" for name in FILES]
    assert locate("tiny") == named
    load("tiny")
    assert len(asked) == 4


def test_fetch_can_be_forbidden(tiny, named, to_idx, download):
    asked = download(packed_files(tiny.arrays, to_idx))
    with pytest.raises(RequestError):
        locate("tiny", fetch=False)
    assert asked == []


def test_a_connection_that_breaks_off_gives_the_four_ways(named, monkeypatch):
    """http.client raises something that is no OSError."""

    class Reply(io.BytesIO):
        def read(self, *_):
            raise http.client.IncompleteRead(b"half")

    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: Reply())
    with pytest.raises(RequestError) as caught:
        load("tiny")
    assert SOURCES["tiny"].url in str(caught.value)
    assert not named.exists()


@pytest.mark.parametrize("arrived", [0, 1, 3])
def test_a_broken_download_leaves_nothing_behind(tiny, named, to_idx, download, arrived):
    files = packed_files(tiny.arrays, to_idx)
    download(dict(list(files.items())[:arrived]))
    with pytest.raises(RequestError):
        load("tiny")
    assert not named.exists()
    assert list(named.parent.iterdir()) == []


def test_a_download_with_wrong_contents_is_not_kept_in_the_cache(tiny, named, to_idx, download):
    """A portal's login page must not stand in the way of the next attempt."""
    download({f"{name}.gz": b"<html>log in first</html>" for name in FILES})
    with pytest.raises(RequestError):
        load("tiny")
    download(packed_files(tiny.arrays, to_idx))
    assert len(load("tiny").train) == 30


def test_the_files_of_an_installed_package_are_read_where_they_are(
    tmp_path, tiny, write, named, to_idx, download, monkeypatch
):
    asked = download(packed_files(tiny.arrays, to_idx))
    monkeypatch.setattr("slimfl.data.sources.INSTALLED", tmp_path / "installed")
    folder = write(tmp_path / "installed/tiny", tiny.arrays, packed=True)
    assert locate("tiny") == folder
    assert len(load("tiny").train) == 30
    assert asked == []
    assert not named.exists()


def four_ways(name, cache):
    return ["--data-dir", "SLIMFL_DATA", str(cache), SOURCES[name].debian, SOURCES[name].url]


def test_when_nothing_helps_the_error_names_all_four_ways(named):
    with pytest.raises(RequestError) as caught:
        load("tiny")
    for way in four_ways("tiny", named):
        assert way in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_cache_that_cannot_be_written_gives_the_four_ways_too(named, monkeypatch, tmp_path):
    """A read-only home folder, as in many containers."""
    obstacle = tmp_path / "file"
    obstacle.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(obstacle))
    with pytest.raises(RequestError) as caught:
        load("tiny")
    for way in four_ways("tiny", obstacle):
        assert way in str(caught.value)


# checksums


@pytest.mark.parametrize("position", range(4))
def test_a_corrupted_copy_of_a_named_dataset_is_refused_by_file(
    tmp_path, tiny, write, named, position
):
    changed = [array.copy() for array in tiny.arrays]
    changed[position].flat[0] ^= 1
    folder = write(tmp_path / "copy", changed)
    with pytest.raises(RequestError) as caught:
        load("tiny", folder)
    assert str(folder / FILES[position]) in str(caught.value)
    assert "checksum" in str(caught.value)


def test_files_that_swapped_places_are_refused(tmp_path, tiny, write, named):
    swapped = (tiny.test_images, tiny.test_labels, tiny.train_images, tiny.train_labels)
    with pytest.raises(RequestError, match="checksum"):
        load("tiny", write(tmp_path / "copy", swapped))


def link_all_but(source, target, name):
    target.mkdir()
    for path in source.iterdir():
        if not path.name.startswith(name):
            (target / path.name).symlink_to(path)
    return next(path for path in source.iterdir() if path.name.startswith(name))


def test_fashion_mnist_is_what_everybody_knows(fashion_mnist, tmp_path):
    """Recompressed as packagers do it: the checksums are of the contents."""
    original = link_all_but(fashion_mnist, tmp_path / "copy", FILES[1])
    raw = original.read_bytes()
    raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    (tmp_path / "copy" / f"{FILES[1]}.gz").write_bytes(gzip.compress(raw, compresslevel=1))
    dataset = load("fashion-mnist", tmp_path / "copy")
    assert dataset.train.images.shape == (60_000, 28, 28, 1)
    assert dataset.test.images.shape == (10_000, 28, 28, 1)
    assert np.bincount(dataset.train.labels).tolist() == [6000] * 10
    assert np.bincount(dataset.test.labels).tolist() == [1000] * 10
    assert dataset.train.labels[:4].tolist() == [9, 0, 0, 3]
    # the mean and deviation that every tutorial prints: 0.2860 and 0.3530
    mean, deviation = dataset.normalisation("standard")
    assert (round(float(mean[0]), 4), round(float(deviation[0]), 4)) == (0.2860, 0.3530)


@pytest.mark.parametrize("online", [True, False])
def test_no_program_is_ever_started(tiny, named, to_idx, download, monkeypatch, online):
    """A library installs no packages, and asks for none as root."""
    started = []
    monkeypatch.setattr("shutil.which", lambda name, *_, **__: f"/usr/bin/{name}")
    monkeypatch.setattr("subprocess.Popen", lambda command, **_: started.append(command))
    monkeypatch.setattr("subprocess.run", lambda command, **_: started.append(command))
    monkeypatch.setattr("os.system", started.append)
    download(packed_files(tiny.arrays, to_idx) if online else {})
    if online:
        assert len(load("tiny").train) == 30
    else:
        with pytest.raises(RequestError, match="apt-get install dataset-tiny"):
            load("tiny")
    assert started == []
