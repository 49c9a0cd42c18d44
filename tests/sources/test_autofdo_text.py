"""Ranges and branches as create_llvm_prof and llvm-profgen write them."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.fixtures import Corpus, Tool
from builders.llvm_profiles import BINARIES, CASES, binary_of
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.model.branch_counts import (
    BRANCH,
    END,
    FROM,
    TO,
    BranchCounts,
    aggregate,
    with_unknown_predictions,
)
from lbr2pgo.profiles.unsymbolized import ranges_text
from lbr2pgo.program.elf.layout import ImageLayout, Segment
from lbr2pgo.sources.autofdo_text import FORMAT, AutoFdoText
from lbr2pgo.sources.base import CountSource, Sniff
from lbr2pgo.support.errors import InputError

Row = tuple[int, int, int, int, int]
Open = Callable[..., AutoFdoText]

# All kinds of address differ: code at 0x401200 is at 0x3200 in the file, 0x1200 from the base.
LAYOUT = ImageLayout(
    "/bin/x", "aa", "x86-64", False,
    (Segment(0x200000, 0, 0x1000, 0x1000, False), Segment(0x400040, 0x2040, 0x1FC0, 0x2000, True)),
)  # fmt: skip
PROFGEN = "2\n1200-1210:5\n1220-1230:6\n2\nffffffffffc00001->1200:7\n1210->1220:8\n"
LINKED = "2\n401200-401210:5\n401220-401230:6\n2\n1->401200:7\n401210->401220:8\n"
AUTOFDO = "2\n3200-3210:5\n3220-3230:6\n1\n3200:99\n2\n3210->3220:8\n99999->3200:7\n"
ROWS = [
    (0, 0x401200, 0, BRANCH | TO, 7),
    (0, 0x401200, 0x401210, TO | END, 5),
    (0, 0x401220, 0x401230, TO | END, 6),
    (0x401210, 0x401220, 0, BRANCH | FROM | TO, 8),
]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    def make(text: str, chunk_size: int = 1 << 20) -> AutoFdoText:
        path = tmp_path / "p.txt"
        path.write_text(text)
        return AutoFdoText(path, chunk_size)

    return make


def rows(source: CountSource, layout: ImageLayout = LAYOUT) -> list[Row]:
    c = source.counts(layout)
    assert not c.mispredicted.any()
    columns = (c.from_, c.to, c.end, c.known, c.count)
    return [tuple(map(int, row)) for row in zip(*columns, strict=True)]  # type: ignore[misc]


def losses(source: CountSource) -> dict[str, int]:
    source.counts(LAYOUT)
    return {reason: count for reason, count in source.health().items() if count}


@pytest.mark.parametrize("text", [PROFGEN, LINKED, AUTOFDO, PROFGEN.replace("\n", "\r\n")])
def test_each_kind_of_address(opened: Open, text: str) -> None:
    assert rows(opened(text)) == ROWS


@pytest.mark.parametrize("chunk_size", [16, 32, 64])
@pytest.mark.parametrize("text", [PROFGEN, AUTOFDO])
def test_chunks_do_not_show(opened: Open, text: str, chunk_size: int) -> None:
    text = text.replace("ffffffffffc00001", "9")
    assert rows(opened(text, chunk_size)) == ROWS


def test_which_tool_wrote_it_is_told(opened: Open) -> None:
    assert opened(PROFGEN).info.details == {"written by": "llvm-profgen"}
    assert opened(AUTOFDO).info.details == {"written by": "create_llvm_prof"}


def test_a_number_of_endless_digits_is_no_number_of_rows(opened: Open) -> None:
    assert FORMAT.sniff(b"7" * 5000 + b"\n1200-1210:5\n") is Sniff.NO
    with pytest.raises(InputError, match="no number of ranges"):
        rows(opened("7" * 5000 + "\n1200-1210:5\n"))
    assert rows(opened("1\n1200-1210:5\n" + "7" * 5000 + "\n")) == [ROWS[1]]


def test_empty_sections(opened: Open) -> None:
    assert rows(opened("0\n0\n")) == []
    assert rows(opened("0\n0\n0\n")) == []
    assert rows(opened("0\n1\n1210->1220:8\n")) == [ROWS[3]]
    assert rows(opened("0\n0\n1\n3210->3220:8\n")) == [ROWS[3]]
    assert rows(opened("0\n1\n3200:9\n1\n3210->3220:8\n")) == [ROWS[3]]
    assert rows(opened("1\n1200-1210:5\n0\n")) == [ROWS[1]]


@pytest.mark.parametrize(
    ("text", "left", "expected"),
    [
        (AUTOFDO, 4, {"sampled addresses, which tell of no branch": 1}),
        (PROFGEN[: -len("1210->1220:8\n")], 3, {"rows missing at the end of the file": 1}),
        (PROFGEN[: PROFGEN.index("2\nfff")], 2, {}),
        (PROFGEN.replace("1220-1230:6", "1220-123x:6"), 3, {"rows that can't be read": 1}),
        (PROFGEN.replace("1220-1230:6", "1220->1230:6"), 3, {"rows that can't be read": 1}),
        (PROFGEN.replace("1220-1230:6", "1220-1230"), 3, {"rows that can't be read": 1}),
        (PROFGEN.replace("1220-1230:6", "1220-1230:-6"), 3, {"rows that can't be read": 1}),
        (PROFGEN.replace("1220", "9220"), 3, {"ranges and branches outside the image": 1}),
        (AUTOFDO.replace("1\n3200:99", "0") + "and more\n", 4, {"lines after the last section": 1}),
    ],
)
def test_what_is_left_out_is_told(
    opened: Open, text: str, left: int, expected: dict[str, int]
) -> None:
    source = opened(text)
    assert len(rows(source)) == left
    assert losses(source) == expected


def test_a_context_sensitive_profile_says_what_to_do(opened: Open) -> None:
    with pytest.raises(InputError, match="--ignore-stack-samples"):
        opened("[main @ foo]\n  1\n  1200-1210:5\n  0\n")


def test_a_broken_file_is_an_input_error(opened: Open) -> None:
    with pytest.raises(InputError, match="no number of ranges"):
        opened("x\n1200-1210:5\n")


@pytest.mark.parametrize(
    ("head", "answer"),
    [
        (PROFGEN.encode(), Sniff.YES),
        (AUTOFDO.encode(), Sniff.YES),
        (b"2\n1200-1210:5\n12", Sniff.YES),
        (b"0\n0\n", Sniff.YES),
        (b"0\n1\n1210->1220:8", Sniff.YES),
        (b"\n[0x12 @ 0x34]\n  1\n  1200-1210:5\n", Sniff.YES),
        (b"[main:1 @ foo]\n  1\n  1200-1210:5\n", Sniff.YES),
        (b"", Sniff.MORE),
        (b"2", Sniff.MORE),
        (b"2\n1200-12", Sniff.MORE),
        (b"[main:1 @ fo", Sniff.MORE),
        (b"3\n  4005dc 0x4005c8/0x4005dc/P/-/-/0\n", Sniff.NO),
        (b"3\n  4005dc 0x4005c8/0x4", Sniff.NO),
        (b"[main:1 @ foo]:123:4\n 1: 5\n", Sniff.NO),
        (b"1 main 5a 1 main 60 0 12\n", Sniff.NO),
        (b"main:123:4\n 1: 5\n", Sniff.NO),
        (b"12 monkeys\n", Sniff.NO),
        (b"T 4b196f 4b19e0 4b19ef 2\n", Sniff.NO),
        (b"PERFILE2\0", Sniff.NO),
    ],
)
def test_sniffing(head: bytes, answer: Sniff) -> None:
    assert FORMAT.sniff(head) is answer


def layout_of(corpus: Corpus, name: str) -> tuple[Path, ImageLayout]:
    from lbr2pgo.program.elf.image import Image

    path = binary_of(corpus, name)
    return path, Image.open(path).layout


def seen(counts: BranchCounts) -> ranges_text.SeenRanges:
    """All that was counted."""
    return ranges_text.SeenRanges(counts.runs(), counts.branches())


def raw_text(source: CountSource, layout: ImageLayout, *, use_offsets: bool = True) -> str:
    stream = io.BytesIO()
    ranges_text.write(seen(source.counts(layout)), layout, stream, use_offsets=use_offsets)
    return stream.getvalue().decode()


@pytest.mark.parametrize("name", CASES)
def test_llvm_profgen_files_come_back_byte_by_byte(
    corpus: Corpus, tmp_path: Path, name: str
) -> None:
    path = corpus(f"llvm-profgen/{name}.expected.raw")
    _, layout = layout_of(corpus, name)
    source = FORMAT.open(path)
    assert isinstance(source, CountSource)
    assert raw_text(source, layout) == path.read_text()
    assert losses_of(source, layout) == 0
    linked = tmp_path / "linked.raw"
    linked.write_text(raw_text(source, layout, use_offsets=False))
    assert raw_text(AutoFdoText(linked), layout) == path.read_text()


def losses_of(source: CountSource, layout: ImageLayout) -> int:
    source.counts(layout)
    return sum(source.health().values())


# Without samples that llvm-profgen drops, and ranges that it judges by their instructions.
WHOLE = sorted(set(CASES) - {*BINARIES, "inline-noprobe2", "noinline-cs-noprobe"})


@pytest.mark.parametrize("name", WHOLE)
def test_perf_script_text_counts_as_in_llvm_profgen(corpus: Corpus, name: str) -> None:
    from lbr2pgo.counting.count import count
    from lbr2pgo.sources.perf_script.reader import PerfScript

    _, layout = layout_of(corpus, name)
    counts = count(PerfScript(corpus(f"llvm-profgen/{name}.perfscript")), layout).counts
    stream = io.BytesIO()
    ranges_text.write(seen(counts), layout, stream)
    assert stream.getvalue() == corpus(f"llvm-profgen/{name}.expected.raw").read_bytes()


@pytest.mark.parametrize("name", ["noprobe", "func-split"])
def test_llvm_profgen_reads_what_we_write(
    corpus: Corpus, tool: Tool, run: Callable[..., object],
    tmp_path: Path, name: str,
) -> None:  # fmt: skip
    binary, layout = layout_of(corpus, name)
    source = FORMAT.open(corpus(f"llvm-profgen/{name}.expected.raw"))
    assert isinstance(source, CountSource)
    for flag in ("1", "0"):
        ours = tmp_path / f"ours{flag}.raw"
        ours.write_text(raw_text(source, layout, use_offsets=flag == "1"))
        out = tmp_path / f"{flag}.prof"
        run(
            tool("llvm-profgen-22"), f"--unsymbolized-profile={ours}", f"--binary={binary}",
            f"--output={out}", "--format=text", "--use-dwarf-correlation", f"--use-offset={flag}",
        )  # fmt: skip
        expected = corpus(f"llvm-profgen/{name}.expected.prof").read_text()
        assert out.read_text() == expected


code = st.integers(0x400040, 0x40203F)
traces = st.one_of(
    st.tuples(code, code, st.just(0), st.just(BRANCH | FROM | TO)),
    st.tuples(st.just(0), code, st.just(0), st.just(BRANCH | TO)),
    st.tuples(code, code, st.integers(0, 0x1000), st.just(BRANCH | FROM | TO | END)),
    st.tuples(st.just(0), code, st.integers(0, 0x1000), st.just(TO | END)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(traces, st.integers(1, 1 << 40)), max_size=20), st.booleans())
def test_any_counts_come_back(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[Any], use_offsets: bool
) -> None:
    keys = np.array([trace for trace, _ in drawn], np.uint64).reshape(-1, 4)
    from_, to, length, known = keys.T
    has_end = known & END != 0
    end = np.where(has_end, np.minimum(to + length, np.uint64(0x40203F)), np.uint64(0))
    count = np.array([number for _, number in drawn], np.uint64)
    counts = aggregate(from_, to, end, known.astype(np.uint8), count, np.zeros_like(count))
    path = tmp_path_factory.getbasetemp() / "any.raw"
    ranges_text.write(seen(counts), LAYOUT, path, use_offsets=use_offsets)
    again = AutoFdoText(path).counts(LAYOUT)
    for part in (BranchCounts.runs, BranchCounts.branches):
        assert as_rows(part(again)) == as_rows(part(with_unknown_predictions(counts)))


def as_rows(table: Any) -> list[list[int]]:
    return [getattr(table, each.name).tolist() for each in fields(table)]


def test_ranges_that_run_backwards_are_not_written() -> None:
    a, b = np.array([0x401210], dtype=np.uint64), np.array([0x401200], dtype=np.uint64)
    one, known = np.ones(1, dtype=np.uint64), np.array([TO | END], dtype=np.uint8)
    stream = io.BytesIO()
    ranges_text.write(seen(aggregate(a, a, b, known, one, one)), LAYOUT, stream)
    assert stream.getvalue() == b"0\n0\n"


def test_simpleperfs_text_of_several_files_is_told_apart_by_build_id(opened: Open) -> None:
    """Each file's sections are followed by its build-id, padded, and its path."""
    end = "// build_id: 0x{}\n// /system/lib64/{}.so\n\n"
    source = opened(AUTOFDO + end.format("AA".ljust(40, "0"), "x") + AUTOFDO.replace(":", ":1")
                    + end.format("bb".ljust(40, "0"), "y"))  # fmt: skip
    assert rows(source) == ROWS
    assert source.health() == {"sampled addresses, which tell of no branch": 2}
    other = replace(LAYOUT, build_id="bb")
    assert [row[4] for row in rows(source, other)] == [int(f"1{row[4]}") for row in ROWS]
    with pytest.raises(InputError, match="holds no counts of /bin/x") as raised:
        source.counts(replace(LAYOUT, build_id="cc"))
    assert "aa" in (raised.value.cure or "")
    assert len(rows(source, replace(LAYOUT, build_id=None))) == len(ROWS)
