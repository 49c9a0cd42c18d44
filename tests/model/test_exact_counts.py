from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.fixtures import TESTBINS

from lbr2pgo.model.exact_counts import ExactCounts, Totals
from lbr2pgo.support.errors import InputError, OutputError

TOTALS = Totals(instructions=1000, taken=12, not_taken=5, mispredicted=3)


def rows(*branches: tuple[int, int, int, int, bool, int, int, int]) -> dict[str, Any]:
    names = ("from_image", "from", "to_image", "to", "taken", "kind", "count", "mispredicted")
    columns = zip(*branches, strict=True) if branches else [()] * len(names)
    return {name: np.array(column, np.uint64) for name, column in zip(names, columns, strict=True)}


@pytest.fixture
def counts() -> ExactCounts:
    return ExactCounts.from_rows(
        rows(
            (1, 0x20, 0, 0x10, True, 1, 3, 1),
            (0, 0x18, 0, 0x10, True, 1, 4, 0),
            (0, 0x18, 0, 0x1A, False, 1, 5, 2),
            (1, 0x20, 0, 0x10, True, 1, 5, 0),
        ),
        ("/bin/a", "/lib/b ö"),
        ("aa", None),
        TOTALS,
    )


def test_rows_are_sorted_and_summed(counts: ExactCounts) -> None:
    assert counts.from_image.tolist() == [0, 0, 1]
    assert counts.from_.tolist() == [0x18, 0x18, 0x20]
    assert counts.to.tolist() == [0x10, 0x1A, 0x10]
    assert counts.taken.tolist() == [True, False, True]
    assert counts.count.tolist() == [4, 5, 8]
    assert counts.mispredicted.tolist() == [0, 2, 1]
    assert len(counts) == 3
    assert counts.of_image(0).tolist() == [True, True, False]


def test_addresses_and_counts_keep_all_their_bits() -> None:
    top = 2**64 - 1
    counts = ExactCounts.from_rows(
        rows((0, top, 0, 0, True, 3, 2**40, 0)), ("/a",), (None,), TOTALS
    )
    assert int(counts.from_[0]) == top
    assert int(counts.count[0]) == 2**40


def test_what_is_saved_is_loaded(counts: ExactCounts, tmp_path: Path) -> None:
    path = tmp_path / "run.exact.npz"
    counts.save(path)
    again = ExactCounts.load(path)
    assert again.images == counts.images
    assert again.build_ids == counts.build_ids
    assert again.totals == counts.totals
    for name in ("from_image", "from_", "to_image", "to", "taken", "kind", "count", "mispredicted"):
        np.testing.assert_array_equal(getattr(again, name), getattr(counts, name))
        assert getattr(again, name).dtype == getattr(counts, name).dtype


def test_saving_twice_gives_the_same_bytes(counts: ExactCounts, tmp_path: Path) -> None:
    counts.save(tmp_path / "one")
    counts.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_run_without_a_branch(tmp_path: Path) -> None:
    ExactCounts.from_rows(rows(), (), (), Totals()).save(tmp_path / "empty")
    assert len(ExactCounts.load(tmp_path / "empty")) == 0


def test_images_are_found_by_build_id_then_path_then_name(counts: ExactCounts) -> None:
    assert counts.find_image("aa", "/elsewhere/x") == 0
    assert counts.find_image("cc", "/lib/b ö") == 1
    assert counts.find_image(None, "/moved/a") == 0
    assert counts.find_image("cc", "/c") is None


def test_where_it_can_not_be_written(counts: ExactCounts, tmp_path: Path) -> None:
    with pytest.raises(OutputError):
        counts.save(tmp_path / "nowhere" / "file")


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04" + bytes(50)])
def test_a_file_of_another_kind(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError, match="no file of exact counts"):
        ExactCounts.load(path)


@pytest.mark.parametrize("size", range(0, 4000, 331))
def test_a_cut_file(size: int, counts: ExactCounts, tmp_path: Path) -> None:
    counts.save(tmp_path / "file")
    whole = (tmp_path / "file").read_bytes()
    (tmp_path / "file").write_bytes(whole[: min(size, len(whole) - 1)])
    with pytest.raises(InputError):
        ExactCounts.load(tmp_path / "file")


DAMAGES: dict[str, dict[str, Any]] = {
    "another format": {"format": np.array("lbr2pgo-exact-9")},
    "a column too short": {"count": np.zeros(2, np.uint64)},
    "text for numbers": {"from": np.array(["a", "b", "c"])},
    "an image that is not there": {"to_image": np.array([0, 7, 0], np.int32)},
    "a negative image": {"from_image": np.array([-1, 0, 0], np.int32)},
    "too few totals": {"totals": np.zeros(2, np.uint64)},
    "too few build-ids": {"build_ids": np.array(["aa"])},
    "a matrix": {"to": np.zeros((3, 1), np.uint64)},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_arrays_that_do_not_fit(damage: str, counts: ExactCounts, tmp_path: Path) -> None:
    counts.save(tmp_path / "good")
    with np.load(tmp_path / "good") as file:
        arrays = dict(file)
    path = tmp_path / "bad.npz"
    np.savez(path, **(arrays | DAMAGES[damage]))
    with pytest.raises(InputError):
        ExactCounts.load(path)
    np.savez(path, **arrays)
    ExactCounts.load(path)


@pytest.mark.parametrize("missing", ["images", "from", "count", "totals", "uncounted"])
def test_an_array_is_missing(missing: str, counts: ExactCounts, tmp_path: Path) -> None:
    counts.save(tmp_path / "good")
    with np.load(tmp_path / "good") as file:
        arrays = {name: file[name] for name in file.files if name != missing}
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(InputError, match=missing):
        ExactCounts.load(tmp_path / "bad.npz")


def test_pickles_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "bad.npz", format=np.array([{}], object))
    with pytest.raises(InputError):
        ExactCounts.load(tmp_path / "bad.npz")


@pytest.mark.parametrize("path", sorted(TESTBINS.glob("recordings/*.npz")), ids=lambda p: p.name)
def test_shipped_files_add_up(path: Path) -> None:
    counts = ExactCounts.load(path)
    assert counts.uncounted == 0
    assert int(counts.count[counts.taken].sum()) == counts.totals.taken
    assert int(counts.count[~counts.taken].sum()) == counts.totals.not_taken
    assert int(counts.mispredicted.sum()) == counts.totals.mispredicted
    assert counts.totals.instructions > counts.totals.taken + counts.totals.not_taken
