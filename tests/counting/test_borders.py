"""Branches across the border of the image, by the file that they lead to or come from."""

from __future__ import annotations

import numpy as np

from lbr2pgo.counting.borders import Borders, _rows_of, borders_of, merge
from lbr2pgo.model.branch_counts import FROM, TO
from lbr2pgo.support.addresses import image_array

Row = tuple[int, int, str, int, int, int]
FILES = ("", "libc", "libm")


def borders(rows: list[Row], files: tuple[str, ...] = FILES) -> Borders:
    address, known, file, *values = zip(*rows, strict=True)
    return borders_of(
        image_array(address),
        np.array(known, np.uint8),
        np.array([files.index(name) for name in file]),
        [np.array(column, np.uint64) for column in values],
        files,
    )


def rows_of(found: Borders) -> list[Row]:
    names = [found.files[number] for number in found.file.tolist()]
    columns = (found.address, found.known, found.count, found.mispredicted)
    address, known, count, wrong = (column.tolist() for column in columns)
    unknown = found.prediction_unknown.tolist()
    return list(zip(address, known, names, count, wrong, unknown, strict=True))


def test_equal_rows_add_up_and_those_of_no_known_file_are_left_out() -> None:
    found = borders(
        [(16, FROM, "libc", 3, 1, 0), (16, FROM, "", 9, 9, 9), (16, FROM, "libm", 1, 0, 0),
         (16, TO, "libc", 5, 0, 2), (16, FROM, "libc", 4, 1, 1)]
    )  # fmt: skip
    assert sorted(rows_of(found)) == [
        (16, FROM, "libc", 7, 2, 1),
        (16, FROM, "libm", 1, 0, 0),
        (16, TO, "libc", 5, 0, 2),
    ]


def test_recordings_may_number_their_files_otherwise() -> None:
    one = borders([(16, FROM, "libc", 3, 1, 0), (32, TO, "libm", 2, 0, 0)])
    other = borders([(16, FROM, "libc", 4, 0, 1)], ("", "libm", "libc"))
    found = merge([one, other])
    assert sorted(rows_of(found)) == [(16, FROM, "libc", 7, 1, 1), (32, TO, "libm", 2, 0, 0)]
    assert rows_of(merge([])) == []


def test_borders_beyond_the_last_branch_have_no_row() -> None:
    found = borders([(16, FROM, "libc", 3, 1, 0), (48, FROM, "libc", 3, 1, 0)])
    inside, known = image_array([16, 32, 64]), np.array([FROM, FROM, TO], np.uint8)
    rows = dict(zip(found.address.tolist(), _rows_of(found, inside, known), strict=True))
    assert rows == {16: 0, 48: -1}
