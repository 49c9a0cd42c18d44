from __future__ import annotations

from pathlib import Path

import pytest
from builders.jit import LOOP, OTHER, X86_64, header, lines, load, move, record

from lbr2pgo.program.jit.jitdump import JitDump, read_jitdump
from lbr2pgo.support.errors import InputError


def dump_of(folder: Path, *parts: bytes) -> JitDump:
    path = folder / "jit-10.dump"
    path.write_bytes(b"".join(parts))
    return read_jitdump(path)


def test_code_names_and_times(tmp_path: Path) -> None:
    late = load(0x2000, "late", OTHER, time=7, number=1)
    dump = dump_of(
        tmp_path, header(), late, load(0x1000, "early", LOOP, time=5), record(9, 9, b"?")
    )
    assert (dump.machine, dump.has_clock, dump.damaged, dump.unusable) == (X86_64, True, 0, 0)
    assert [(f.time, f.address, f.name, f.code) for f in dump.functions] == [
        (5, 0x1000, b"early", LOOP), (7, 0x2000, b"late", OTHER)
    ]  # fmt: skip


def test_moved_code_keeps_its_name_bytes_and_lines(tmp_path: Path) -> None:
    told = lines(0x1000, [(0x1000, 3, b"a.js"), (0x1002, 4, b"\xff")])
    made = load(0x1000, "f", LOOP, number=4)
    dump = dump_of(
        tmp_path, header(), told, made, move(0x1000, 0x3000, 5, 8, 4), move(0, 1, 5, 9, 99)
    )
    first, moved = dump.functions
    assert (moved.address, moved.time, moved.name, moved.code) == (0x3000, 8, b"f", LOOP)
    assert first.lines == moved.lines == ((0, 3, b"a.js"), (2, 4, b"a.js"))


def test_v8_tells_lines_behind_an_elf_header_that_is_not_there(tmp_path: Path) -> None:
    told = lines(0x1000, [(0x1040, 3, b"a.js"), (0x1042, 4, b"a.js"), (0x1045, 9, b"a.js")])
    (function,) = dump_of(tmp_path, header(), told, load(0x1000, "f", LOOP)).functions
    assert function.lines == ((0, 3, b"a.js"), (2, 4, b"a.js"))


def test_a_process_that_still_writes_loses_its_last_record_alone(tmp_path: Path) -> None:
    made, cut = load(0x1000, "f", LOOP), load(0x2000, "g", OTHER)
    for size in (1, 15, 16, 40, len(cut) - 1):
        dump = dump_of(tmp_path, header(), made, cut[:size])
        assert ([f.name for f in dump.functions], dump.damaged) == ([b"f"], size)


def test_what_follows_the_end_of_the_process_is_not_read(tmp_path: Path) -> None:
    end = record(3, 6, b"")
    dump = dump_of(tmp_path, header(), load(0x1000, "f", LOOP), end, load(0x2000, "g", LOOP))
    assert [f.name for f in dump.functions] == [b"f"]
    assert dump.damaged == 0


@pytest.mark.parametrize(
    "bad",
    [
        record(0, 1, b"short"),
        record(0, 1, load(0x2000, "g", LOOP)[16:-2]),
        record(2, 1, (0x1000).to_bytes(8, "little") + b"\xff" * 8),
        record(0, 1, b"\xff" * 60),
    ],
)
def test_a_damaged_record_ends_what_can_be_read(tmp_path: Path, bad: bytes) -> None:
    after = load(0x3000, "h", LOOP)
    dump = dump_of(tmp_path, header(), load(0x1000, "f", LOOP), bad, after)
    assert [f.name for f in dump.functions] == [b"f"]
    assert dump.damaged == len(bad) + len(after)


def test_impossible_places_are_counted(tmp_path: Path) -> None:
    dump = dump_of(tmp_path, header(flags=1), load(1 << 63, "far", LOOP), load(0x1000, "none", b""))
    assert (dump.functions, dump.unusable, dump.has_clock) == ((), 2, False)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is no jitdump"),
        (b"\x7fELF" + bytes(60), "is no jitdump"),
        (header(magic=0x4454694A), "big-endian"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        dump_of(tmp_path, content)
    with pytest.raises(InputError, match="can't be read"):
        read_jitdump(tmp_path / "none.dump")
