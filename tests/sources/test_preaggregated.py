"""BOLT's pre-aggregated profiles, row by row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import Corpus

from lbr2pgo.model.branch_counts import BRANCH, END, FROM, OUTSIDE, RETURN, TO
from lbr2pgo.program.elf.layout import ImageLayout, Segment
from lbr2pgo.sources.base import Addresses, CountSource, Sniff
from lbr2pgo.sources.preaggregated import FORMAT, Preaggregated

Row = tuple[int, int, int, int, int, int]
Read = Callable[..., list[Row]]

OWN = "aabbccddeeff00112233445566778899aabbccdd"
OTHER = "1234567890"


def layout(build_id: str | None = OWN) -> ImageLayout:
    segments = (
        Segment(0x400, 0x400, 0x100, 0x100, False),
        Segment(0x1000, 0, 0x1000, 0x1000, True),
    )
    return ImageLayout("/bin/x", build_id, "x86-64", True, segments)


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[str], Preaggregated]:
    def make(text: str) -> Preaggregated:
        path = tmp_path / "p.preagg"
        path.write_text(text)
        return Preaggregated(path)

    return make


@pytest.fixture
def read(opened: Callable[[str], Preaggregated]) -> Read:
    def rows(text: str, build_id: str | None = OWN) -> list[Row]:
        counts = opened(text).counts(layout(build_id))
        columns = (
            counts.from_, counts.to, counts.end, counts.known, counts.count, counts.mispredicted
        )  # fmt: skip
        return [tuple(map(int, row)) for row in zip(*columns, strict=True)]  # type: ignore[misc]

    return rows


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("B 1010 1020 4 2", (0x1010, 0x1020, 0, BRANCH | FROM | TO, 4, 2)),
        ("B 0 1020 4 2", (0, 0x1020, 0, BRANCH | TO, 4, 2)),
        ("B 1010 7f0012345678 4 2", (0x1010, 0, 0, BRANCH | FROM, 4, 2)),
        ("B X:7f00 1020 4 2", (0, 0x1020, 0, BRANCH | TO, 4, 2)),
        ("B X:1010 1020 4 2", (0, 0x1020, 0, BRANCH | TO, 4, 2)),
        ("B 1010 X:1020 4 2", (0x1010, 0, 0, BRANCH | FROM, 4, 2)),
        ("B :1010 :1020 4 2", (0x1010, 0x1020, 0, BRANCH | FROM | TO, 4, 2)),
        ("B 410 1020 4 2", (0, 0x1020, 0, BRANCH | TO, 4, 2)),  # data of the image
        ("F 1020 1030 4", (0, 0x1020, 0x1030, TO | END, 4, 0)),
        ("f 1020 1030 4", (0, 0x1020, 0x1030, TO | END | OUTSIDE, 4, 0)),
        ("r 1020 1030 4", (0, 0x1020, 0x1030, TO | END | OUTSIDE | RETURN, 4, 0)),
        ("T 1010 1020 1030 4", (0x1010, 0x1020, 0x1030, BRANCH | FROM | TO | END, 4, 0)),
        ("T 0 1020 1030 4", (0, 0x1020, 0x1030, BRANCH | TO | END, 4, 0)),
        ("T 1010 0 1030 4", (0x1010, 0, 0, BRANCH | FROM, 4, 0)),
        ("T 1010 1020 9030 4", (0x1010, 0x1020, 0, BRANCH | FROM | TO, 4, 0)),
        ("T 1010 1020 ffffffffffffffff 4", (0x1010, 0x1020, 0, BRANCH | FROM | TO, 4, 0)),
        ("T ffffffffffffffff 1020 1030 4", (0, 0x1020, 0x1030, TO | END, 4, 0)),
        ("T fffffffffffffffe 1020 1030 4", (0, 0x1020, 0x1030, TO | END | OUTSIDE, 4, 0)),
        ("T fffffffffffffffd 1020 1030 4", (0, 0x1020, 0x1030, TO | END | OUTSIDE | RETURN, 4, 0)),
        ("R 1010 1020 1030 4", (0x1010, 0x1020, 0x1030, BRANCH | FROM | TO | END | RETURN, 4, 0)),
        ("R 0 1020 1030 4", (0, 0x1020, 0x1030, BRANCH | TO | END | RETURN, 4, 0)),
        ("  T  1010\t1020 1030   4 \r", (0x1010, 0x1020, 0x1030, 15, 4, 0)),
        ("T 1010 1020 1FFf 4", (0x1010, 0x1020, 0x1FFF, 15, 4, 0)),
    ],
)  # fmt: skip
def test_rows(read: Read, row: str, expected: Row) -> None:
    assert read(f"E cycles\n{row}\n") == [expected]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("B 9010 9020 4 2", "rows outside the image"),
        ("F 1020 9020 4", "rows outside the image"),
        ("F X:1020 X:1030 4", "rows outside the image"),
        ("T 0 0 0 4", "rows outside the image"),
        (f"T {OTHER}:1010 {OTHER}:1020 {OTHER}:1030 4", "rows outside the image"),
        ("S 1020 4", "rows of basic samples (S), which tell of no branch"),
        ("B 1010 1020 4", "lines that are no row"),
        ("B 1010 1020 4 2 1", "lines that are no row"),
        ("B 1010 1020 -4 2", "lines that are no row"),
        ("B 1010 10x0 4 2", "lines that are no row"),
        ("B 11112222333344445 1010 4 2", "lines that are no row"),
        ("T 1010 1020 4", "lines that are no row"),
        ("BB 1010 1020 4 2", "lines that are no row"),
        ("Q 1010 1020 4 2", "lines that are no row"),
        ("B", "lines that are no row"),
    ],
)
def test_what_is_left_out_is_told(
    opened: Callable[[str], Preaggregated], row: str, reason: str
) -> None:
    source = opened(f"# remark\n\n{row}\nB 1010 1020 1 0\n")
    assert len(source.counts(layout())) == 1
    assert {key: n for key, n in source.health().items() if n} == {reason: 1}


def test_equal_rows_add_up_and_kinds_stay_apart(read: Read) -> None:
    rows = "B 1010 1020 4 2\nT 1010 1020 1030 5\nB 1010 1020 1 1\nF 1020 1030 7\n"
    assert read(rows) == [
        (0, 0x1020, 0x1030, TO | END, 7, 0),
        (0x1010, 0x1020, 0, BRANCH | FROM | TO, 5, 3),
        (0x1010, 0x1020, 0x1030, 15, 5, 0),
    ]


def test_an_own_build_id_marks_the_rows_of_the_image(read: Read) -> None:
    rows = f"B 1010 1020 4 2\nB {OWN.upper()}:1010 {OWN}:1020 1 0\nB 1010 {OWN}:1040 3 0\n"
    assert read(rows) == [
        (0, 0x1040, 0, BRANCH | TO, 3, 0), (0x1010, 0x1020, 0, BRANCH | FROM | TO, 1, 0)
    ]  # fmt: skip
    assert read(rows, None) == [
        (0x1010, 0, 0, BRANCH | FROM, 3, 0), (0x1010, 0x1020, 0, BRANCH | FROM | TO, 4, 2)
    ]  # fmt: skip


def test_mispredictions_of_a_branch_row_go_to_its_traces(read: Read) -> None:
    rows = "T 1010 1020 1030 5\nT 1010 1020 1040 5\nB 1010 1020 0 7\nB 1010 1050 2 1\n"
    assert [row[4:] for row in read(rows)] == [(5, 5), (5, 2), (2, 1)]


def test_a_branch_row_with_room_keeps_its_mispredictions(read: Read) -> None:
    rows = "T 1010 1020 1030 5\nB 1010 1020 3 3\n"
    assert [row[4:] for row in read(rows)] == [(3, 3), (5, 0)]


def test_where_no_branch_was_mispredicted_no_prediction_is_known(
    opened: Callable[[str], Preaggregated],
) -> None:
    silent = opened("T 1010 1020 1030 4\nB 1010 1020 2 0\nF 1010 1020 3\n").counts(layout())
    assert int(silent.prediction_unknown.sum()) == 6
    told = opened("T 1010 1020 1030 4\nB 1010 1020 2 1\n").counts(layout())
    assert not told.prediction_unknown.any()


def test_rows_in_many_chunks(tmp_path: Path) -> None:
    path = tmp_path / "p.preagg"
    lines = [f"T {0x1000 + i:x} {0x1100 + i % 7:x} {0x1200 + i % 3:x} {i}" for i in range(1, 2000)]
    path.write_text("\n".join(lines))
    whole, pieces = (Preaggregated(path, size).counts(layout()) for size in (1 << 20, 128))
    assert int(whole.count.sum()) == sum(range(1, 2000))
    for name in ("from_", "to", "end", "known", "count", "mispredicted"):
        assert np.array_equal(getattr(whole, name), getattr(pieces, name))


def test_a_file_without_rows_gives_no_counts(read: Read) -> None:
    assert read("E cycles\n") == []


def test_events_are_named(opened: Callable[[str], Preaggregated]) -> None:
    source = opened("E cycles:u\nB 1010 1020 4 2\nE branches\nB 1010 1020 4 2\nE cycles:u\n")
    assert [event.name for event in source.info.events] == ["cycles:u", "branches"]
    assert source.info.addresses is Addresses.IMAGE
    assert isinstance(source, CountSource)


@pytest.mark.parametrize(
    ("head", "answer"),
    [
        (b"B 5c99d9 5c99c0 4 2\n", Sniff.YES),
        (b"F 41be50 41be50 3\n", Sniff.YES),
        (b"# made by hand\n\nT 4b196f 4b19e0 4b19ef 2", Sniff.YES),
        (b"E cycles\nS 41be50 3\n", Sniff.YES),
        (b"B X:7f36d18d60c0 400bbc 2 0\n", Sniff.YES),
        (b"R 0 4b19e0 4b19ef 2\nrubbish", Sniff.YES),
        (b"B 5c99d9 5c99c0\n", Sniff.YES),  # broken, but nothing else
        (b"", Sniff.MORE),
        (b"E cyc", Sniff.MORE),
        (b"T 4b196f 4b1", Sniff.MORE),
        (b"Some text\n", Sniff.NO),
        (b"F is a letter\n", Sniff.NO),
        (b"1 main 5a 1 main 60 0 12\n", Sniff.NO),
        (b"2\n870-870:2\n", Sniff.NO),
        (b"PERFILE2", Sniff.NO),
    ],
)
def test_sniffing(head: bytes, answer: Sniff) -> None:
    assert FORMAT.sniff(head) is answer


def test_a_real_profile(corpus: Corpus) -> None:
    from lbr2pgo.program.elf.image import Image

    path = corpus("bolt/openssl.preagg.txt.zst")
    source = FORMAT.open(path)
    assert isinstance(source, CountSource)
    counts = source.counts(Image.open(corpus("bolt/openssl.zst")).layout)
    rows = [line.split() for line in path.read_text().splitlines()]
    outside = source.health()["rows outside the image"]
    assert outside < len(rows) // 100
    assert sum(int(row[3]) for row in rows) >= int(counts.count.sum())
    inside = [row for row in rows if all(0x401000 <= int(a, 16) < 0x931325 for a in row[1:3])]
    for letter, bits in (("B", BRANCH | FROM | TO), ("F", TO | END)):
        expected = sum(int(row[3]) for row in inside if row[0] == letter)
        assert int(counts.count[counts.has(bits)].sum()) == expected
