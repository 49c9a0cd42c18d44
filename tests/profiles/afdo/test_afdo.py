"""GCC's file, read back, taken by gcc itself, and damaged."""

from __future__ import annotations

import struct
from collections.abc import Callable
from fractions import Fraction
from io import BytesIO
from pathlib import Path

import pytest
from builders.recordings import STATIC, recorded

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.fleet.merge import MergeOptions, merge_files
from lbr2pgo.profiles.afdo.afdo import GccProfile, decode, is_afdo, read, write
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile
from lbr2pgo.profiles.registry import output
from lbr2pgo.support.errors import InputError

WORDS_FROM_HEADER = 12


def profile(version: int = 2) -> GccProfile:
    """A function with calls and, two levels deep, inlined copies."""
    samples = SampleProfile()
    main = samples.function("main")
    main.head, main.total = 1, 16
    main.body = {(1, 0): 5, (2, 3): 0, (65535, 65535): 2**40}
    main.total += 2**40
    main.call_targets = {(1, 0): {"f": 4, "g": 1}}
    inner = main.callee((4, 0), "f")
    inner.body, inner.total = {(0, 0): 7}, 11
    deeper = inner.callee((1, 2), "naïve")
    deeper.body, deeper.total = {(3, 0): 4}, 4
    samples.function("f").head = 2**63
    if version < 3:
        return GccProfile(samples, version)
    return GccProfile(samples, version, {"main": 123456789012}, {"f": "a.c", "naïve": "b.c"})


def encoded(of: GccProfile) -> bytes:
    stream = BytesIO()
    write(of, stream)
    return stream.getvalue()


def with_functions(data: bytes, number: int) -> bytes:
    """A file that says it has so many."""
    at = data.index(struct.pack("<I", 0xAC000000)) + 8
    return data[:at] + struct.pack("<I", number) + data[at + 4 :]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_is_written_is_read_back(version: int) -> None:
    data = encoded(profile(version))
    assert is_afdo(data)
    assert decode(data, "here") == profile(version)
    assert encoded(decode(data, "here")) == data


def test_the_file_begins_as_gcc_wants_it() -> None:
    """Magic, version 2, nothing; strings with lengths in bytes, the empty one first."""
    data = encoded(profile())
    assert struct.unpack_from("<3I", data) == (0x67636461, 2, 0)
    tag, _, count, empty = struct.unpack_from("<4I", data, WORDS_FROM_HEADER)
    assert (tag, count, empty) == (0xAA000000, 5, 1)
    assert data[28:29] == b"\0"
    assert struct.unpack_from("<I", data, 29) == (2,)
    assert data[33:35] == b"f\0"


def test_a_location_has_sixteen_bits_of_each_and_wraps_as_in_gcc() -> None:
    samples = SampleProfile()
    samples.function("f").body = {(65536 + 7, 65536 + 2): 9}
    assert decode(encoded(GccProfile(samples)), "here").samples.functions["f"].body == {(7, 2): 9}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_names_of_any_length_and_lines_beyond_every_limit_are_kept(version: int) -> None:
    """Templates have names of megabytes; what GCC has no bits for wraps as it does there."""
    long, samples = "_Z" + "x" * (1 << 20), SampleProfile()
    samples.function(long).add_body((65535 + 3, 65536), 7)
    found = decode(encoded(GccProfile(samples, version)), "here").samples
    assert list(found.functions) == [long]
    assert found.functions[long].body == {(2, 0): 7}


def test_the_old_string_encoding_is_read_too() -> None:
    """Lengths in words, padded: what google/autofdo wrote before 2022, and GCC 12 can't read."""
    data = struct.pack("<3I", 0x67636461, 2, 0) + struct.pack("<3I", 0xAA000000, 6, 2)
    data += struct.pack("<I4s", 1, b"") + struct.pack("<I8s", 2, b"main")
    data += struct.pack("<3I", 0xAC000000, 9, 1) + struct.pack("<QIII", 3, 1, 1, 0)
    data += struct.pack("<IIQ", 2 << 16, 0, 8)
    main = decode(data, "here").samples.functions["main"]
    assert (main.head, main.total, main.body) == (3, 8, {(2, 0): 8})


def test_profiles_add_up_with_the_earliest_times(tmp_path: Path) -> None:
    one, other = profile(3), profile(3)
    other.first_seen = {"main": 5, "f": 9}
    paths = tmp_path / "one.afdo", tmp_path / "other.afdo"
    write(one, paths[0])
    write(other, paths[1])
    out = tmp_path / "sum.afdo"
    merge_files(MergeOptions(paths, out, {paths[1]: Fraction(2)}))
    found = read(out)
    assert (found.version, found.first_seen) == (3, {"main": 5, "f": 9})
    main = found.samples.functions["main"]
    assert (main.head, main.total) == (3, 3 * one.samples.functions["main"].total)
    assert main.body[1, 0] == 15
    assert main.call_targets == {(1, 0): {"f": 12, "g": 3}}
    assert main.callee((4, 0), "f").callee((1, 2), "naïve").body == {(3, 0): 12}


def test_versions_that_no_gcc_reads_both_of_are_not_merged(tmp_path: Path) -> None:
    paths = tmp_path / "older.afdo", tmp_path / "newer.afdo"
    write(profile(2), paths[0])
    write(profile(3), paths[1])
    with pytest.raises(
        InputError, match="version 3 of GCC's format can't be merged with 2"
    ) as told:
        merge_files(MergeOptions(paths, tmp_path / "sum.afdo"))
    assert told.value.where == str(paths[1])
    assert "--afdo-version" in (told.value.cure or "")


def test_working_sets_say_how_many_counts_make_up_each_128th() -> None:
    """A tenth of how many, by the next of LLVM's cutoffs, and the smallest of them."""
    samples = SampleProfile()
    samples.function("f").body = {(line, 0): 10_000 - line for line in range(100)}
    size = 2 + 3 * 128
    tag, words, *content = struct.unpack(f"<{size}I", encoded(GccProfile(samples))[-4 * size :])
    assert (tag, words) == (0xAF000000, len(content))
    rows = [tuple(content[3 * k :][:3]) for k in (0, 11, 12, 62, 63, 64, 127)]
    tenths = [(0, 1), (1, 10), (2, 20), (5, 50), (5, 50), (6, 60), (10, 100)]
    assert rows == [(tenth, 10_001 - number, 0) for tenth, number in tenths]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda d: b"\0" + d[1:], "0x0: this is no profile for GCC"),
        (lambda d: d[:4] + b"\7\0\0\0" + d[8:], "0x4: version 7 of the format, known are 1, 2, 3"),
        (lambda d: d[:60], "the table of strings is broken"),
        (lambda d: d[:90], "cut off"),
        (lambda d: with_functions(d, 1000), "cut off in 1000 functions"),
        (lambda d: d.replace(b"naive", b"naiv"), "the table of strings is broken"),
        (lambda d: d.replace(struct.pack("<II", 7, 1), struct.pack("<II", 7, 77)), "name 77 of a"),
    ],
    ids=["magic", "version", "strings", "cut", "functions", "shorter", "name"],
)
def test_damage_is_told_with_its_place(change: Callable[[bytes], bytes], told: str) -> None:
    samples = profile().samples
    samples.functions["main"].callsites[4, 0]["f"].callsites = {
        (1, 2): {"naive": FunctionSamples("naive")}
    }
    data = change(encoded(GccProfile(samples)))
    with pytest.raises(InputError, match=f"^bad.afdo@(0x[0-9a-f]+: )?{told}"):
        decode(data, "bad.afdo")


def test_every_cut_is_an_error_and_nothing_else() -> None:
    data = encoded(profile(3))
    end = data.index(struct.pack("<I", 0xAE000000))
    for size in range(end):
        with pytest.raises(InputError):
            decode(data[:size], "cut")


def test_nesting_without_end_is_refused() -> None:
    samples = SampleProfile()
    inner = samples.function("f")
    for _ in range(600):
        inner = inner.callee((0, 0), "f")
    with pytest.raises(InputError, match="inlined more than"):
        decode(encoded(GccProfile(samples)), "deep")


def test_a_function_is_first_seen_at_the_earliest_of_its_branches(tmp_path: Path) -> None:
    """In one the branch of the lower address comes first, in the other that of the higher."""
    walk, walk_on = (0x22AC54, 0x22AC00, 2), (0x22AC31, 0x22AC56, 2)
    token, token_before = (0x22ACDF, 0x22ACC0, 2), (0x22AC9B, 0x22AC80, 2)
    recording, path = tmp_path / "perf.data", tmp_path / "afdo"
    recording.write_bytes(recorded([[walk, walk], [walk_on], [token, token], [token_before]]))
    convert(ConvertOptions((recording,), STATIC, (output("afdo", path, version="3"),)))
    assert read(path).first_seen == {"walk": 100, "next_token": 102}
