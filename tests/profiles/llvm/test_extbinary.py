import io
import random
import time
import zlib
from dataclasses import replace

import pytest
from builders.sample_profiles import parse, profiles, text, with_tools
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles.llvm import extbinary as llvm_extbinary
from lbr2pgo.profiles.llvm import text as llvm_text
from lbr2pgo.profiles.llvm import uleb
from lbr2pgo.profiles.llvm.extbinary import Options, table_order
from lbr2pgo.profiles.llvm.extbinary_layout import SECTION, SectionFlag, SectionType
from lbr2pgo.profiles.llvm.extbinary_reader import decode
from lbr2pgo.profiles.llvm.sample_names import Frame, guid
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.program.pseudo_probes import DEEPEST_INLINING
from lbr2pgo.support.errors import InputError, OutputError

PROFILE = b"""\
main:184019:7
 4: 534
 4.2: 534 _Z3barv:500 _Z3fooi:34
 5.1: 1075
 7: _Z3inl:100
  1: 100
  2: _Z4leaf:50
   1: 50
 7: _Z4also.__uniq.12:3
  1: 3
_Z3barv:20301:1437
 1: 1437
"""
PROBES = b"""\
f:9:1
 1: 5
 2: g:4
  1: 4
  !CFGChecksum: 8
 !CFGChecksum: 7
"""
CONTEXTS = b"""\
[main:3.1 @ f:5 @ g]:12:3
 1: 12
 !Attributes: 2
[main]:3:0
 1: 2 f:1
[f]:2:1
 1: 2
"""
HEADER = 9 + 1 + 8  # magic, version, number of sections


def written(profile, **options):
    stream = io.BytesIO()
    llvm_extbinary.write(profile, stream, Options(**options))
    return stream.getvalue()


@pytest.fixture
def llvm(tool, run, tmp_path):
    """What llvm-profdata makes of text, in binary."""

    def merge(content, *options):
        (tmp_path / "in").write_bytes(content)
        command = [tool("llvm-profdata-22"), "merge", "--sample", *(options or ("--extbinary",))]
        run(*command, tmp_path / "in", "-o", tmp_path / "out", errors="replace")
        return (tmp_path / "out").read_bytes()

    return merge


KINDS = {
    "plain": (PROFILE, ("--extbinary",), {}),
    "md5": (PROFILE, ("--extbinary", "--use-md5"), {"md5_names": True}),
    "compressed": (PROFILE, ("--extbinary", "--compress-all-sections"), {"compress": True}),
    "both": (
        PROFILE,
        ("--extbinary", "--compress-all-sections", "--use-md5"),
        {"md5_names": True, "compress": True},
    ),
    "probes": (PROBES, ("--extbinary",), {}),
    "attributes": (PROBES + b" !Attributes: 2\n", ("--extbinary",), {}),
    "contexts": (CONTEXTS.replace(b" !Attributes: 2\n", b""), ("--extbinary",), {}),
    "contexts, md5": (
        CONTEXTS.replace(b" !Attributes: 2\n", b""),
        ("--extbinary", "--use-md5"),
        {"md5_names": True},
    ),
    "vtables": (
        b"f:1:1\n 1: 1 g:1\n 1: vtables _ZTVb:1 _ZTVa:5 \n 2: h:4\n  1: 4\n  1: vtables _ZTVc:2 \n",
        ("--extbinary", "-extbinary-write-vtable-type-prof"),
        {},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_bytes_are_llvms(llvm, kind):
    content, options, ours = KINDS[kind]
    profile = parse(content)
    if "contexts" in kind:  # the order of metadata is that of llvm-profdata's hash table
        expected = llvm(content, *options)
        profile = decode(expected, "x") if "md5" not in kind else reorder(profile, expected)
    assert written(profile, **ours) == llvm(content, *options)


def reorder(profile, data):
    """The functions of a profile in the order of another profile with hashed names."""
    by_hash = {
        tuple(Frame(guid(frame.function), frame.location) for frame in key): key
        for key in profile.functions
    }
    keys = [by_hash[key] for key in decode(data, "x").functions]
    profile.functions = {key: profile.functions[key] for key in keys}
    return profile


@pytest.mark.parametrize("kind", KINDS)
def test_llvms_bytes_come_back(llvm, kind):
    content, options, ours = KINDS[kind]
    data = llvm(content, *options)
    profile = decode(data, "x")
    if "md5_names" in ours:
        data = llvm(data, "--extbinary", *options)  # LLVM orders hashes anew
        profile = decode(data, "x")
    assert written(profile, **ours) == data


def test_flags_of_the_profile_survive(llvm):
    profile = replace(parse(PROFILE), is_partial=True, is_fs=True, is_preinlined=True)
    assert decode(written(profile), "x") == profile
    profile = replace(parse(PROFILE), is_partial=True)
    assert written(profile) == llvm(PROFILE, "--extbinary", "--gen-partial-profile")


def test_metadata_of_contexts_survives():
    profile = parse(CONTEXTS)
    assert profile.is_preinlined
    assert decode(written(profile), "x") == profile


def test_metadata_of_inlined_copies_survives():
    profile = parse(
        PROBES.replace(b"  !CFGChecksum: 8\n", b"  !CFGChecksum: 8\n  !Attributes: 3\n")
    )
    assert decode(written(profile), "x") == profile


def test_symbols_are_those_of_llvm(tool, run, tmp_path):
    (tmp_path / "in").write_bytes(PROFILE)
    (tmp_path / "symbols").write_text("zeta\nmain\n_Z3barv\n")
    command = [tool("llvm-profdata-22"), "merge", "--sample", "--extbinary"]
    command += ["--prof-sym-list", tmp_path / "symbols"]
    run(*command, tmp_path / "in", "-o", tmp_path / "out")
    profile = decode((tmp_path / "out").read_bytes(), "x")
    assert profile.symbols == {"zeta", "main", "_Z3barv"}
    assert decode(written(profile), "x") == profile
    (tmp_path / "ours").write_bytes(written(profile))
    show = (tool("llvm-profdata-22"), "show", "--sample", "--show-prof-sym-list")
    shown = run(*show, tmp_path / "ours").stdout
    assert shown == run(*show, tmp_path / "out").stdout
    assert "zeta" in shown


def test_hashes_stand_for_names():
    profile = decode(written(parse(PROFILE), md5_names=True), "x")
    assert set(profile.functions) == {guid("main"), guid("_Z3barv")}
    main = profile.functions[guid("main")]
    assert main.call_targets[4, 2] == {guid("_Z3barv"): 500, guid("_Z3fooi"): 34}
    assert written(profile) == written(profile, md5_names=True)  # there is no other way


def test_hashes_of_any_length_are_read():
    data = written(parse(b"f:1:1\n 1: 1\n"), md5_names=True)
    table = uleb.encode([1, guid("f")])[0]
    changed = with_section(data, SectionType.NAMES, table, int(SectionFlag.NAMES_MD5))
    assert set(decode(changed, "x").functions) == {guid("f")}


def test_the_raw_form_is_read(llvm):
    assert decode(llvm(PROFILE, "--binary"), "x") == parse(PROFILE)


def test_layouts_with_two_sections_of_samples_are_read(llvm):
    assert decode(llvm(PROFILE, "--extbinary", "--split-layout"), "x") == parse(PROFILE)


def test_binary_forms_are_recognised(llvm):
    for options in (("--binary",), ("--extbinary",)):
        assert llvm_extbinary.is_binary_profile(llvm(PROFILE, *options)[:64])
    assert not llvm_extbinary.is_binary_profile(PROFILE)
    assert not llvm_extbinary.is_binary_profile(b"")


def test_llvm_profdata_reads_what_we_write(tool, run, tmp_path):
    for number, (content, _, options) in enumerate(KINDS.values()):
        if options.get("md5_names") or b"vtables" in content:
            continue
        path = tmp_path / str(number)
        llvm_extbinary.write(parse(content), path, Options(**options))
        merge = (tool("llvm-profdata-22"), "merge", "--sample", "--text")
        run(*merge, path, "-o", tmp_path / "text")
        assert (tmp_path / "text").read_bytes() == content


def test_a_real_profile_is_written_as_llvm_does(corpus, llvm, tmp_path):
    path = corpus("sqlite/sq.llvm-profgen-22.prof.zst")
    expected = llvm(path.read_bytes())
    llvm_extbinary.write(llvm_text.read(path), tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == expected
    again = llvm_extbinary.read(tmp_path / "ours")
    assert text(again) == path.read_bytes()


@pytest.mark.parametrize("name", ["noprobe", "inline-noprobe2", "multi-load-segs", "func-split"])
def test_the_bytes_are_llvm_profgens(corpus, tool, run, tmp_path, name):
    binary = corpus(f"llvm-profgen/{name}.perfbin")
    script = corpus(f"llvm-profgen/{name}.perfscript")
    command = [tool("llvm-profgen-22"), f"--perfscript={script}", f"--binary={binary}"]
    command += ["--use-dwarf-correlation", "--ignore-stack-samples"]
    for form in ("text", "extbinary"):
        run(*command, f"--format={form}", "-o", tmp_path / form)
    profile = llvm_text.read(tmp_path / "text")
    assert written(profile) == (tmp_path / "extbinary").read_bytes()
    assert llvm_extbinary.read(tmp_path / "extbinary") == profile


SOURCE = """
int work(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++)
    if (i % 7 == 3) sum += i; else sum ^= n;
  return sum;
}
"""


@pytest.mark.parametrize("form", ["text", "extbinary", "md5", "compressed", "symbols"])
def test_clang_takes_the_counts(tool, run, tmp_path, form):
    profile = parse(b"work:1000:40\n 1: 40\n 2: 900\n 3: 900\n 4: 40\n")
    if form == "text":
        llvm_text.write(profile, tmp_path / "p")
    else:
        if form == "symbols":
            profile.symbols = frozenset({"work", "cold"})
        options = Options(md5_names=form == "md5", compress=form == "compressed")
        llvm_extbinary.write(profile, tmp_path / "p", options)
    (tmp_path / "w.c").write_text(SOURCE)
    command = [tool("clang-22"), "-O1", "-g1", f"-fprofile-sample-use={tmp_path}/p", "-S"]
    done = run(*command, "-emit-llvm", tmp_path / "w.c", "-o", tmp_path / "w.ll")
    assert done.stderr == ""
    ir = (tmp_path / "w.ll").read_text()
    assert '!{!"function_entry_count", i64 40}' in ir
    assert "branch_weights" in ir


@given(
    profiles(has_vtables=True)
    | profiles(is_cs=True, attributes=(0, 1, 2, 4))
    | profiles(is_probe_based=True, attributes=(2, 7))
    | profiles(is_probe_based=True),
    st.booleans(),
)
def test_any_profile_survives(profile, compress):
    data = written(profile, compress=compress)
    again = decode(data, "x")
    if not (profile.is_cs or profile.is_preinlined):
        assert not any(function.attributes for function in profile.functions.values())
    assert again == profile
    assert written(again, compress=compress) == data


@with_tools
@given(
    profiles() | profiles(is_probe_based=True, attributes=(0, 1, 2)),
    st.sampled_from(["md5", "compressed", "plain"]),
)
def test_any_bytes_are_llvms(llvm, profile, kind):
    _, options, ours = KINDS[kind]
    assert written(profile, **ours) == llvm(text(profile), *options)


@with_tools
@given(profiles(is_cs=True, attributes=(0, 2)))
def test_any_bytes_of_contexts_are_llvms_but_for_the_order_of_metadata(llvm, profile):
    expected = llvm(text(profile))
    assert decode(expected, "x") == profile
    assert written(decode(expected, "x")) == expected
    ours, theirs = (sections(data) for data in (written(profile), expected))
    for kind in set(SectionType) - {SectionType.METADATA}:
        assert ours[kind] == theirs[kind]
    flags, body = ours[SectionType.METADATA]
    assert flags == theirs[SectionType.METADATA][0]
    assert sorted(body) == sorted(theirs[SectionType.METADATA][1])


def test_metadata_of_many_functions_is_in_the_order_of_llvms_tables(llvm):
    profile = SampleProfile(is_probe_based=True)
    for number in range(3000):
        function = profile.function(f"function{number * number}")
        function.checksum = number + 1
        function.total = number % 50
    data = llvm(text(profile))
    assert written(profile) == data
    assert written(decode(data, "x")) == data


def test_a_name_with_a_nul_byte_is_refused():
    profile = SampleProfile()
    profile.function("a\0b")
    with pytest.raises(OutputError, match="NUL"):
        written(profile)
    written(profile, md5_names=True)


# Hostile and damaged files


def sections(data):
    """Flags and bytes of each section, by type."""
    rows = SECTION.iter_unpack(data[HEADER : HEADER + 7 * SECTION.size])
    return {kind: (flags, data[at : at + size]) for kind, flags, at, size in rows}


def with_section(data, kind, body, flags=0):
    """The same file with another section of this type, put at the end."""
    table = bytearray(data)
    for i in range(7):
        at = HEADER + i * SECTION.size
        if SECTION.unpack_from(table, at)[0] == kind:
            SECTION.pack_into(table, at, kind, flags, len(data), len(body))
    return bytes(table) + body


def decode_or_refuse(data):
    """A refusal names the offset; what is read can be written."""
    place = "x@0x"
    try:
        text(decode(data, "x"))
    except InputError as error:
        place = error.where
    assert place.startswith("x@0x")


@pytest.mark.parametrize("kind", list(SectionType))
@pytest.mark.parametrize(
    "body", [b"\x80", b"\xff" * 11, uleb.encode([2**64 - 1])[0], b"\x05\x05\x05\x05", b"x\0" * 9]
)
@pytest.mark.parametrize("flags", [0, 1, 1 << 32, 3 << 32, 0xFFFFFFFF << 32])
def test_a_damaged_section_is_refused_or_read(kind, body, flags):
    for content in (PROFILE, PROBES, CONTEXTS):
        decode_or_refuse(with_section(written(parse(content)), kind, body, flags))


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"", "no end"),
        (b"hello\n", "no binary sample profile"),
        (written(parse(PROFILE))[:9] + b"\x66", "version 102"),
        (written(parse(PROFILE))[:12], "cut off"),
        (written(parse(PROFILE))[:40], "cut off"),
        (written(parse(PROFILE))[:300], "beyond the end"),
    ],
)
def test_errors_say_what_is_wrong(data, part):
    with pytest.raises(InputError, match=part) as caught:
        decode(data, "x")
    assert caught.value.where.startswith("x@0x")


def test_a_table_holds_no_name_more_than_it_says():
    data = written(parse(PROFILE))
    flags, names = sections(data)[SectionType.NAMES]
    longer = with_section(data, SectionType.NAMES, names + b"more\0", flags)
    with pytest.raises(InputError, match="more than 6 names"):
        decode(longer, "x")


def test_a_table_holds_no_name_less_than_it_says(llvm):
    raw = llvm(PROFILE, "--binary")
    names = raw.index(b"\0")
    with pytest.raises(InputError, match="cut off in a table of names"):
        decode(raw[: names + 2], "x")


def test_calls_from_where_nothing_was_sampled_have_no_samples():
    profile = parse(b"f:3:1\n 1: 3 g:2\n")
    profile.functions["f"].body.clear()
    assert decode(written(profile), "x").functions["f"].body == {(1, 0): 0}


def test_samples_in_a_section_of_a_newer_llvm_are_named():
    data = bytearray(written(parse(PROFILE)))
    at = HEADER + 4 * SECTION.size
    assert SECTION.unpack_from(data, at)[0] == SectionType.SAMPLES
    data[at] = 33
    with pytest.raises(InputError, match="newer"):
        decode(bytes(data), "x")


def test_unknown_sections_are_skipped():
    data = bytearray(written(parse(PROFILE)))
    at = HEADER + 5 * SECTION.size
    data[at : at + SECTION.size] = SECTION.pack(99, 0, 0, 10)
    assert decode(bytes(data), "x") == parse(PROFILE)


def test_sections_do_not_unpack_without_bound():
    bomb = zlib.compress(bytes(1 << 28), 9)
    body = uleb.encode([1 << 28, len(bomb)])[0] + bomb
    data = with_section(
        written(parse(PROFILE)), SectionType.SAMPLES, body, int(SectionFlag.COMPRESSED)
    )
    with pytest.raises(InputError, match="too much"):
        decode(data, "x")


@pytest.mark.parametrize(
    "packed",
    [zlib.compress(bytes(1 << 20), 9), zlib.compress(bytes(99)), zlib.compress(bytes(100))[:-1]],
    ids=["more", "less", "no end"],
)
def test_a_section_that_does_not_unpack_to_what_it_says_is_refused(packed):
    body = uleb.encode([100, len(packed)])[0] + packed
    data = with_section(
        written(parse(PROFILE)), SectionType.SAMPLES, body, int(SectionFlag.COMPRESSED)
    )
    with pytest.raises(InputError, match="does not hold 100 bytes"):
        decode(data, "x")


def test_one_section_is_not_read_many_times():
    data = bytearray(written(parse(PROFILE)))
    rows = [SECTION.unpack_from(data, HEADER + i * SECTION.size) for i in range(7)]
    samples = next(row for row in rows if row[0] == SectionType.SAMPLES)
    for i in range(2, 7):
        SECTION.pack_into(data, HEADER + i * SECTION.size, *samples[:3], len(data) - samples[2])
    with pytest.raises(InputError, match="overlap"):
        decode(bytes(data), "x")


def test_nests_are_read_up_to_a_limit():
    def nest(depth):
        profile = SampleProfile()
        function = profile.function("f")
        for _ in range(depth):
            function = function.callee((1, 0), "f")
        return profile

    assert decode(written(nest(DEEPEST_INLINING)), "x") == nest(DEEPEST_INLINING)
    with pytest.raises(InputError, match="deep"):
        decode(written(nest(DEEPEST_INLINING + 1)), "x")


@pytest.mark.parametrize("content", [PROFILE, PROBES, CONTEXTS])
@pytest.mark.parametrize("options", [{}, {"md5_names": True}, {"compress": True}])
def test_damaged_files_are_refused_or_read(content, options):
    data = written(parse(content), **options)
    noise = random.Random(7)
    start = time.process_time()
    for _ in range(500):
        damaged = bytearray(data[: noise.randrange(len(data)) if noise.random() < 0.3 else None])
        for _ in range(noise.randrange(4)):
            if damaged:
                damaged[noise.randrange(len(damaged))] = noise.randrange(256)
        decode_or_refuse(bytes(damaged))
    assert time.process_time() - start < 20


TABLE = """
#include <cstdio>
#include <unordered_map>
int main() {
  std::unordered_map<unsigned long, int> table;
  unsigned long hash;
  for (int i = 0; std::scanf("%lu", &hash) == 1; i++) table.try_emplace(hash, i);
  for (auto &entry : table) std::printf("%d ", entry.second);
}
"""


@pytest.fixture(scope="module")
def table(tool, run, tmp_path_factory):
    directory = tmp_path_factory.mktemp("table")
    (directory / "table.cc").write_text(TABLE)
    run(tool("g++"), "-std=c++17", directory / "table.cc", "-o", directory / "table")
    return directory / "table"


@pytest.mark.parametrize("count", [0, 1, 2, 12, 13, 14, 28, 29, 30, 59, 60, 1000, 50_000])
def test_the_order_is_that_of_the_standard_library(table, run, count):
    noise = random.Random(count)
    hashes = noise.sample(range(2 * count), count)[: count // 2]
    hashes += [noise.getrandbits(64) for _ in range(count - len(hashes))]
    walked = run(table, input=" ".join(map(str, hashes))).stdout
    assert table_order(hashes) == [int(index) for index in walked.split()]


def test_the_first_buckets():
    assert table_order([]) == []
    assert table_order([5]) == [0]
    assert table_order([5, 6, 18, 19]) == [3, 1, 2, 0]
