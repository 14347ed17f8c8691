"""`python -m lab reproduce status`: rounds, seconds and the remaining time."""

import json

import pytest

from lab.archive import pack
from lab.cell import cell
from lab.progress import status
from lab.scale import scale
from slimfl import experiment as config
from slimfl.runs.sweeps import complete
from tests.lab.test_archive import tiny

STANDARD = scale("standard")


#: A round in which nobody answered.
ROUND = {
    **{key: [] for key in ("devices", "dropped_out", "refused", "gains", "decoded")},
    **{key: [0, 0] for key in ("delivered", "bits_sent", "bits_decoded", "bits_dropped")},
    **dict.fromkeys(("airtime_s", "energy_j", "paper_power_mw", "paper_mflops"), 0.0),
    "accuracy": {},
}


def begin(one, cache, rounds, seconds):
    """A run folder with rounds that took so long."""
    folder = one.folder(cache)
    folder.mkdir(parents=True)
    (folder / "experiment.toml").write_text(config.dump(one.grown, data_sha256=""))
    taken = {"training": seconds * 0.75, "evaluation": seconds * 0.25}
    lines = ({**ROUND, "round": n, "seconds": taken} for n in range(1, rounds + 1))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def grid(seed=0, **changes):
    return cell(STANDARD, alpha=1.0, seed=seed, **changes)


def test_time_left_is_rounds_left_times_seconds_over_the_cores(tmp_path):
    half, done, never = grid(0), grid(1), grid(2)
    begin(half, tmp_path, 50, 10.0)
    begin(done, tmp_path, 200, 12.0)
    got = status("standard", [half, done, never], tmp_path, None, workers=2)
    assert [(c["rounds_done"], c["rounds"]) for c in got["cells"]] == [(50, 80), (80, 80), (0, 80)]
    assert [c["seconds_left"] for c in got["cells"]] == pytest.approx([30 * 10, 0, 80 * 11])
    assert [c["measured"] for c in got["cells"]] == [True, True, False]
    assert got["finished"] == 1
    assert got["seconds_left"] == pytest.approx(880)  # the longest run, which one core must finish
    alone = status("standard", [half, done, never], tmp_path, None, workers=1)
    assert alone["seconds_left"] == pytest.approx(300 + 880)


def test_other_methods_and_device_counts_are_estimated_by_their_work(tmp_path):
    slim, many = grid(), grid(devices=70)
    wide, narrow = grid(method="vanilla-1.0x"), grid(method="vanilla-0.5x")
    begin(slim, tmp_path, 10, 10.0)
    got = status("standard", [slim, many, wide, narrow], tmp_path, None, 1)["cells"]
    # widths cost their square, and an epoch is 60,000 images whoever has them
    assert [c["seconds_per_round"] for c in got] == pytest.approx([10, 10, 8, 2])


def test_before_anything_was_timed_the_time_is_unknown(tmp_path):
    got = status("standard", [grid()], tmp_path, None, 2)
    assert got["seconds_left"] is None
    assert got["cells"][0]["seconds_left"] is None


def test_the_archive_counts_where_it_is_further(tmp_path):
    short, long = tiny(2), tiny(4)
    complete(short.job(tmp_path / "cells"))
    pack(short, tmp_path / "cells", tmp_path / "archive")
    (got,) = status("x", [long], tmp_path / "none", tmp_path / "archive", 1)["cells"]
    assert (got["rounds_done"], got["rounds"], got["measured"]) == (2, 4, True)
    complete(long.job(tmp_path / "cells"))
    (got,) = status("x", [long], tmp_path / "cells", tmp_path / "archive", 1)["cells"]
    assert got["rounds_done"] == 4
