"""Every release of a private run is counted at least once, whatever happens to the folder."""

import errno
import json
import os
from types import SimpleNamespace

import numpy as np
import pytest

from slimfl.errors import RequestError
from slimfl.experiment import DataSection, PrivacySection
from slimfl.methods import RunningMean, Work
from slimfl.radio import Signal
from slimfl.round.privacy import RELEASES, Clip, Privacy, Releases
from slimfl.round.uploads import Upload

LAST = np.zeros(8, np.float32)
#: The positions of the first segment.
FIRST = np.arange(3)


def privacy(noise="secret", folder=None, state=None):
    section = PrivacySection(clip_norm=1.0, noise_multiplier=1.0, noise=noise)
    guard = Privacy(section, devices=4, seed=3)
    if state is not None:
        guard.restore(state)
    guard.begin(DataSection(normalise="centred"), folder)
    return guard


def play(guard, number, devices):
    running, plan = RunningMean(LAST), SimpleNamespace(round=number, model=LAST, receptions=None)
    clip, work = Clip(guard.section.clip_norm, lambda which, order: FIRST), Work((0,), ((0,),))
    for device in devices:
        upload = Upload(0, device, work, Signal(work.messages, None))
        upload.parameters, upload.where = LAST + 1, FIRST
        for stage in (clip, guard):
            stage.decode_all([upload], plan)
        running.add(upload.parameters, upload.where)
    guard.finish(running, plan)
    return running.result()


def test_rounds_run_again_with_secret_noise_count_again(tmp_path):
    """As if the process was killed and began at its checkpoint, or without any."""
    first = privacy(folder=tmp_path)
    play(first, 1, [0, 1])
    checkpoint = first.state()
    play(first, 2, [1, 2])
    second = privacy(folder=tmp_path, state=checkpoint)
    assert second.heard.tolist() == [1, 2, 1, 0]
    play(second, 2, [1, 2])
    assert second.heard.tolist() == [1, 3, 2, 0]
    again = second.state()
    for state in (again, checkpoint, None):
        assert privacy(folder=tmp_path, state=state).heard.tolist() == [1, 3, 2, 0]


def test_seeded_rounds_are_the_same_result_and_count_once(tmp_path):
    first = privacy("seeded", tmp_path)
    checkpoint = first.state()
    one = play(first, 1, [0, 1])
    second = privacy("seeded", tmp_path, checkpoint)
    other = play(second, 1, [0, 1])
    np.testing.assert_array_equal(one, other)
    assert second.heard.tolist() == [1, 1, 0, 0]
    assert not (tmp_path / RELEASES).exists()


def test_a_result_is_on_disk_before_it_is_made(tmp_path, monkeypatch):
    guard = privacy(folder=tmp_path)
    seen = []

    def watched(count):
        seen.append((tmp_path / RELEASES).read_bytes())
        return np.zeros(count)

    monkeypatch.setattr("slimfl.round.privacy.secret_gaussian", watched)
    play(guard, 1, [3])
    assert json.loads(seen[0]) == {"release": 1, "round": 1, "heard": [3]}


def test_a_kill_at_any_byte_of_the_file_leaves_a_count_that_is_not_too_small(tmp_path):
    path = tmp_path / RELEASES
    first = privacy(folder=tmp_path)
    for number in (1, 2, 3):
        play(first, number, [0, number])
    whole = path.read_bytes()
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        complete = whole[:size].count(b"\n")
        guard = privacy(folder=tmp_path)
        assert guard.heard[0] == complete
        play(guard, complete + 1, [0])
        assert privacy(folder=tmp_path).heard[0] == complete + 1


def test_a_disk_that_fails_in_the_middle_of_a_line_leaves_whole_lines(tmp_path, monkeypatch):
    guard = privacy(folder=tmp_path)
    play(guard, 1, [0])

    def short(descriptor, raw, write=os.write):
        if not raw.startswith(b"{"):
            raise OSError(errno.ENOSPC, "no space left")
        return write(descriptor, raw[:5])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", short)
        with pytest.raises(OSError, match="space"):
            play(guard, 2, [0])
    assert privacy(folder=tmp_path).heard.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize(
    "damage",
    [
        b"\x00\xff",
        b"{}",
        b'{"release": 2, "round": 2, "heard": [9]}',
        b'{"release": true, "round": 2, "heard": []}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_line_counts_for_everybody(tmp_path, damage, caplog):
    first = privacy(folder=tmp_path)
    play(first, 1, [0])
    checkpoint = first.state()
    for number in (2, 3):
        play(first, number, [1])
    lines = (tmp_path / RELEASES).read_bytes().splitlines()
    (tmp_path / RELEASES).write_bytes(b"\n".join([lines[0], damage, lines[2], b""]))
    guard = privacy(folder=tmp_path, state=checkpoint)
    assert guard.heard.tolist() == [2, 2, 1, 1]
    assert "damaged" in caplog.text
    play(guard, 4, [2])
    assert Releases(tmp_path, 4).read()[-1] == (4, [2])


def test_a_checkpoint_without_the_count_is_believed(tmp_path):
    """Runs of version 0.1 have neither the count nor the file."""
    guard = privacy(folder=tmp_path, state={"heard": [5, 4, 3, 2], "released": 0})
    play(guard, 6, [0])
    assert guard.heard.tolist() == [6, 4, 3, 2]
    assert guard.released == 1


def test_a_link_or_a_pipe_in_its_place_is_refused(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("precious")
    for place in ("link", "pipe", "folder"):
        folder = tmp_path / place
        folder.mkdir()
        match place:
            case "link":
                (folder / RELEASES).symlink_to(outside)
            case "pipe":
                os.mkfifo(folder / RELEASES)
            case _:
                (folder / RELEASES).mkdir()
        with pytest.raises(RequestError, match=RELEASES):
            privacy(folder=folder)
    assert outside.read_text() == "precious"
