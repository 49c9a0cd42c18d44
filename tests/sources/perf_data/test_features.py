from __future__ import annotations

import struct

import pytest

from lbr2pgo.model import perf_abi as abi
from lbr2pgo.sources.perf_data.features import (
    build_ids,
    describe,
    event_descriptions,
    event_groups,
    parse_build_id,
    text_of,
)

ID = bytes(range(1, 21))


def text(content: bytes) -> bytes:
    """As perf writes a string: padded to 64 bytes."""
    return struct.pack("<I", 64) + content.ljust(64, b"\0")


def identity(path: bytes, raw: bytes = ID, *, misc: int = 0, pid: bytes = b"\xff" * 4) -> bytes:
    body = pid + raw.ljust(24, b"\0") + path.ljust(16, b"\0")
    return struct.pack("<IHH", 67, misc, 8 + len(body)) + body


def test_strings_end_with_their_first_zero() -> None:
    assert text_of(text(b"here")) == "here"
    assert text_of(text(b"caf\xff")) == "caf\udcff"
    with pytest.raises(ValueError, match="runs past"):
        text_of(text(b"here")[:-1])
    with pytest.raises(struct.error):
        text_of(b"abc")


@pytest.mark.parametrize(
    ("feature", "section", "facts"),
    [
        (abi.FEATURE_HOSTNAME, text(b"here"), [("host", "here")]),
        (
            abi.FEATURE_CMDLINE, struct.pack("<I", 2) + text(b"perf") + text(b"record"),
            [("command", "perf record")],
        ),
        (abi.FEATURE_NRCPUS, struct.pack("<II", 8, 4), [("cpus", "4")]),
        (abi.FEATURE_TOTAL_MEM, struct.pack("<Q", 77), [("memory", "77 KiB")]),
        (
            abi.FEATURE_SAMPLE_TIME, struct.pack("<QQ", 3, 9),
            [("time of first sample", "3 ns"), ("time of last sample", "9 ns")],
        ),
        (abi.FEATURE_ARCH, text(b"x86_64"), []),
    ],
)  # fmt: skip
def test_facts_are_those_that_perf_shows(
    feature: int, section: bytes, facts: list[tuple[str, str]]
) -> None:
    assert list(describe(feature, section)) == facts


def test_events_have_their_names_and_ids() -> None:
    raw = abi.ATTR.pack(0, abi.ATTR.size, 1, *[0] * 10)
    section = struct.pack("<II", 2, len(raw))
    section += raw + struct.pack("<I", 2) + text(b"a:u") + struct.pack("<QQ", 5, 6)
    section += raw + struct.pack("<I", 0) + text(b"b")
    assert [(e.name, e.ids) for e in event_descriptions(section)] == [("a:u", (5, 6)), ("b", ())]
    with pytest.raises(ValueError, match="ids run past"):
        event_descriptions(section[: 8 + len(raw) + 4 + 68 + 8])
    with pytest.raises(ValueError, match="shorter than the first"):
        event_descriptions(struct.pack("<II", 1, 8))


def test_groups_are_places_among_all_events() -> None:
    section = struct.pack("<I", 2) + text(b"") + struct.pack("<II", 0, 3)
    section += text(b"g") + struct.pack("<II", 4, 2)
    assert event_groups(section) == [range(3), range(4, 6)]


def test_build_ids_are_found_behind_zeros_too() -> None:
    section = identity(b"/bin/a") + bytes(36) + identity(b"/bin/b", b"\xab" * 8)
    assert build_ids(section) == {"/bin/a": ID.hex(), "/bin/b": "ab" * 8}
    with pytest.raises(ValueError, match="does not fit"):
        build_ids(section[:-1])


def test_records_of_old_kernels_lack_the_process() -> None:
    old = identity(b"[kernel.kallsyms]", pid=b"") + identity(b"/bin/a", pid=b"")
    assert build_ids(old) == {"[kernel.kallsyms]": ID.hex(), "/bin/a": ID.hex()}


def test_a_stated_size_outweighs_zeros() -> None:
    raw = bytes(16).ljust(20, b"\0") + bytes([16])
    assert parse_build_id(identity(b"a", raw, misc=abi.MISC_BUILD_ID_SIZE)).build_id == "00" * 16
    assert parse_build_id(identity(b"a", raw[:20])).build_id == ""
