"""`python -m lab reproduce verify`: the first rounds again, to the bit or within rounding."""

import json
import lzma
from dataclasses import replace

import pytest

from lab.archive import find, pack
from lab.verify import BITS, ROUNDING, UNLEARNED, archived, choose, verify
from slimfl.errors import RequestError
from slimfl.runs.sweeps import complete
from tests.lab.test_archive import tiny


@pytest.fixture(scope="module")
def entry(tmp_path_factory):
    root = tmp_path_factory.mktemp("verify")
    cell = tiny(3)
    complete(cell.job(root / "cells"))
    return cell, pack(cell, root / "cells", root / "archive")


def changed(entry, change):
    """The entry with other metrics in it."""
    lines = [line.model_copy(deep=True) for line in entry.lines]
    change(lines)
    copy = replace(entry)
    copy.__dict__["lines"] = lines
    return copy


def made_otherwise(entry, **changes):
    first = {**entry.made[0], **changes}
    return replace(entry, manifest={**entry.manifest, "made": [first]})


def test_the_same_engine_gives_the_same_bits(entry):
    cell, stored = entry
    got = verify(cell, stored, 2)
    assert (got.rounds, got.compared, got.difference) == (2, BITS, None)
    assert verify(cell, stored, 99).rounds == 3


def test_the_last_bit_of_a_loss_is_noticed_with_round_and_field(entry):
    cell, stored = entry

    def nudge(lines):
        lines[1]["loss"]["0.5x"] *= 1 + 2**-52

    got = verify(cell, changed(stored, nudge), 3)
    assert got.difference.startswith("round 2, loss.0.5x: ")


def test_another_engine_is_compared_within_rounding(entry):
    cell, stored = entry

    def nudge(lines):
        lines[0]["loss"]["0.5x"] *= 1.0001
        lines[0]["gains"][0] *= 1 + 1e-15

    other = made_otherwise(changed(stored, nudge), engine="native (another)")
    other.__dict__["lines"] = changed(stored, nudge).lines
    got = verify(cell, other, 1)
    assert (got.compared, got.difference) == (ROUNDING, None)

    def wrong(lines):
        lines[0]["delivered"][0] -= 1

    other.__dict__["lines"] = changed(stored, wrong).lines
    assert verify(cell, other, 1).difference.startswith("round 1, delivered[0]: ")

    def learned_otherwise(lines):
        lines[0]["loss"]["1.0x"] *= 1.5

    other.__dict__["lines"] = changed(stored, learned_otherwise).lines
    assert verify(cell, other, 1).difference.startswith("round 1, loss.1.0x: ")


def test_the_torch_engine_is_within_rounding_of_the_native(tmp_path):
    native = pytest.importorskip("slimfl._native")
    assert native.simd_levels()
    cell, by_torch = tiny(2), tiny(2, engine="torch")
    complete(by_torch.job(tmp_path / "cells"))
    by_torch.folder(tmp_path / "cells").rename(tmp_path / "cells" / cell.name)
    stored = pack(cell, tmp_path / "cells", tmp_path / "archive")
    got = verify(cell, stored, 2)
    assert (got.compared, got.difference) == (ROUNDING, None)


def test_other_first_weights_leave_only_the_rest_to_compare(entry):
    cell, stored = entry

    def learned_otherwise(lines):
        lines[0]["accuracy"]["1.0x"] = 0.987

    other = made_otherwise(stored, weights="0" * 12)
    other.__dict__["lines"] = changed(stored, learned_otherwise).lines
    got = verify(cell, other, 1)
    assert (got.compared, got.difference) == (UNLEARNED, None)


def test_only_rounds_of_the_machine_that_began_are_compared(entry):
    cell, stored = entry
    first = {**stored.made[0], "until": 1}
    second = {**first, "until": 3, "engine": "native (another)"}
    two = replace(stored, manifest={**stored.manifest, "made": [first, second]})
    assert verify(cell, two, 3).rounds == 1


def test_cells_are_chosen_at_random_and_an_empty_archive_is_told(entry, tmp_path):
    assert {choose(range(6), 1)[0] for _ in range(200)} == set(range(6))
    assert sorted(choose(range(3), 9)) == [0, 1, 2]
    with pytest.raises(RequestError, match="contains no runs"):
        archived(tmp_path, [entry[0]])


def test_metrics_are_read_as_they_were_packed(entry):
    cell, stored = entry
    raw = lzma.decompress((stored.folder / "metrics.jsonl.xz").read_bytes())
    assert [json.loads(line) for line in raw.splitlines()] == [r.as_json() for r in stored.lines]
    assert find(stored.folder.parent, cell).lines == stored.lines
