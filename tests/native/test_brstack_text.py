"""The kernels of `perf script` text against regular expressions, and on arbitrary bytes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.model.branch_stacks import MISPREDICTED, PREDICTED
from lbr2pgo.native import brstack_entry, text
from lbr2pgo.native.brstack_lines import FEWEST_BYTES
from lbr2pgo.sources.perf_script.reader import PerfScript

ENTRY = re.compile(rb"0x([0-9a-fA-F]{1,16})/0x([0-9a-fA-F]{1,16})/([PM-])/-/-/(\d+)(?=\s|$)")
LETTERS = {b"P": PREDICTED, b"M": MISPREDICTED, b"-": 0}

addresses = st.integers(0, 2**64 - 1).map(lambda value: f"0x{value:x}")
entries = st.builds(
    lambda f, t, letter, cycles: f"{f}/{t}/{letter}/-/-/{cycles}",
    addresses, addresses, st.sampled_from("PM-"), st.integers(0, 0xFFFF),
)  # fmt: skip
lines = st.lists(entries, min_size=1, max_size=40).map("  ".join)
# Bytes that come near to what the kernels look for.
pieces = st.sampled_from(
    [b"0x", b"4005dc", b"/", b"P", b"/-", b"-", b" ", b"\n", b"\t", b":", b"(", b")", b"1.5: ",
     b"7/8", b"PERF_RECORD_MMAP2 ", b"[unknown]", b"+0x1c", b"#", b"\r", b"\xff", b"cycles: ",
     b"/P/-/-/4", b" 0x10/0x20/P/-/-/4", b"12\n"]
)  # fmt: skip


def bytes_of(line: bytes) -> text.Text:
    return np.frombuffer(bytearray(line), dtype=np.uint8)


def batches(path: Path, content: bytes, chunk_size: int = 1 << 16) -> list[list[list[int]]]:
    path.write_bytes(content)
    source = PerfScript(path, chunk_size)
    found = []
    for batch in source.batches(lambda name: len(name)):
        assert len(batch.time) == len(batch)  # the constructor has checked the rest
        for a, b in zip(batch.offsets, batch.offsets[1:], strict=False):
            found.append(batch.entries[a:b].tolist())
    assert all(count >= 0 for count in source.health().values())
    return found


@settings(deadline=None)
@given(st.lists(lines, min_size=1, max_size=5))
def test_entries_are_those_of_a_regular_expression(
    tmp_path_factory: pytest.TempPathFactory, content: list[str]
) -> None:
    raw = [line.encode() for line in content]
    expected = [
        [[int(f, 16), int(t, 16), LETTERS[p] | int(c) << 4] for f, t, p, c in ENTRY.findall(line)]
        for line in raw
    ]
    path = tmp_path_factory.getbasetemp() / "entries.txt"
    assert batches(path, b"\n".join(b" " + line for line in raw)) == expected


@settings(deadline=None, max_examples=300)
@given(st.lists(pieces, max_size=60).map(b"".join))
def test_any_bytes_are_read_without_harm(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.txt"
    whole = batches(path, content)
    assert sum(map(len, whole)) <= len(content) // FEWEST_BYTES + 1
    # Chunks must not show, but for lines that no chunk can hold.
    if max(map(len, content.split(b"\n"))) < 256:
        assert batches(path, content, 256) == whole


@pytest.mark.parametrize(
    ("raw", "value", "length"),
    [(b"0", 0, 1), (b"fF0g", 0xFF0, 3), (b"", 0, 0), (b"g", 0, 0), (b"f" * 16, 2**64 - 1, 16),
     (b"1" + b"f" * 16, 0, 0), (b"0" * 30 + b"1", 1, 31)],
)  # fmt: skip
def test_hexadecimal_numbers(raw: bytes, value: int, length: int) -> None:
    assert text.read_hex(bytes_of(raw), 0, len(raw)) == (value, length)


@pytest.mark.parametrize(
    ("raw", "value", "length"),
    [(b"0", 0, 1), (b"120:", 120, 3), (b"x", 0, 0), (b"9" * 19, 10**19 - 1, 19), (b"9" * 20, 0, 0)],
)
def test_decimal_numbers(raw: bytes, value: int, length: int) -> None:
    assert text.read_decimal(bytes_of(raw), 0, len(raw)) == (value, length)


def test_a_hash_is_the_same_in_both_worlds() -> None:
    name = b"operator new(unsigned long)\xff"
    assert int(text.hash_text(bytes_of(name), 0, len(name))) == text.hash_name(name)


@pytest.mark.parametrize("cut", range(1, 24))
def test_no_part_of_an_entry_is_an_entry(cut: int) -> None:
    raw = b"0x4005c8/0x4005dc/P/-/-/4"[:-cut]
    entry = np.zeros(3, dtype=np.uint64)
    assert brstack_entry.read_entry(bytes_of(raw), 0, len(raw), entry) == brstack_entry.NO_ENTRY
