import time

import pytest
from builders.sample_profiles import parse, profiles, with_tools
from builders.sample_profiles import text as written
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles.llvm import text as llvm_text
from lbr2pgo.profiles.llvm.sample_names import Frame
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.program.pseudo_probes import DEEPEST_INLINING
from lbr2pgo.support.errors import InputError, OutputError

PROFILE = b"""\
main:184019:7
 4: 534
 4.2: 534 _Z3barv:500 _Z3fooi:34
 5.1: 1075
 5.1: vtables _ZTV3Bar:20 _ZTV3Foo:10\x20
 7: _Z3inl:100
  1: 100
  2: _Z4leaf:50
   1: 50
  3: _Z4leaf:1
   0: 1
 7: _Z4also:3
  1: 3
_Z3barv:20301:1437
 1: 1437
"""

CORPUS = (
    "sqlite/sq.llvm-profgen-22.prof.zst",
    "autofdo/test.llvm-profgen-22.prof",
    "autofdo/test.create_llvm_prof.prof",
    "llvm-profgen/artificial-branch.expected.prof",
    "llvm-profgen/func-split.expected.prof",
    "llvm-profgen/inline-noprobe2.expected.prof",
    "llvm-profgen/invalid-range.expected.prof",
    "llvm-profgen/multi-load-segs.expected.prof",
    "llvm-profgen/noinline-cs-noprobe.expected.prof",
    "llvm-profgen/noinline-cs-pseudoprobe.expected.prof",
    "llvm-profgen/noprobe.agg.expected.prof",
    "llvm-profgen/noprobe.expected.prof",
    "llvm-profgen/recursion-compression-noprobe.expected.prof",
    "llvm-profgen/unique-linkage-name-dwarf.expected.prof",
)


def test_every_kind_of_line():
    profile = parse(PROFILE)
    main = profile.function("main")
    assert (main.total, main.head) == (184019, 7)
    assert main.body == {(4, 0): 534, (4, 2): 534, (5, 1): 1075}
    assert main.call_targets == {(4, 2): {"_Z3barv": 500, "_Z3fooi": 34}}
    assert main.vtables == {(5, 1): {"_ZTV3Bar": 20, "_ZTV3Foo": 10}}
    inlined = [(location, callee.name, callee.total) for location, callee in main.inlined()]
    assert inlined == [((7, 0), "_Z3inl", 100), ((7, 0), "_Z4also", 3)]
    assert main.callsites[7, 0]["_Z3inl"].callsites[2, 0]["_Z4leaf"].body == {(1, 0): 50}
    assert not profile.is_cs
    assert not profile.is_probe_based
    assert written(profile) == PROFILE


def test_text_profiles_are_recognised():
    assert llvm_text.is_text_profile(PROFILE)
    assert llvm_text.is_text_profile(b"# hello\n\nf:1:1\r\n 1: 1")
    for content in (b"", b"#\n", b" 1: 1\n", b"1 main 6 1 main d 0 99\n", b"\x7fELF", b"f:1\n"):
        assert not llvm_text.is_text_profile(content)


def test_metadata_is_read_and_written():
    content = (
        b"f:9:1\n 1: 5\n 2: g:4\n  1: 4\n  !CFGChecksum: 8\n !CFGChecksum: 7\n !Attributes: 2\n"
    )
    profile = parse(content)
    assert profile.is_probe_based
    assert profile.is_preinlined
    assert profile.function("f").checksum == 7
    assert profile.function("f").attributes == 2
    assert profile.function("f").callsites[2, 0]["g"].checksum == 8
    assert written(profile) == content


def test_contexts_are_read_and_written():
    content = b"[main:3.1 @ _Z3fooi:5 @ bar]:12:3\n 1: 12\n[main]:2:0\n 1: 2\n"
    profile = parse(content)
    assert profile.is_cs
    context = (Frame("main", (3, 1)), Frame("_Z3fooi", (5, 0)), Frame("bar"))
    assert list(profile.functions) == [context, (Frame("main"),)]
    assert written(profile) == content


def test_a_flat_mark_changes_nothing():
    profile = parse(b"f:1:1\n 1: 1\n !Attributes: 4\n !Flat\n")
    assert profile.function("f").attributes == 4


def test_blank_lines_and_comments_are_skipped():
    assert written(parse(b"# hello\n\nf:1:1\n   \n # aside\n 1: 1\n#:1:1\n")) == b"f:1:1\n 1: 1\n"


def test_lines_may_end_as_on_windows_and_the_last_not_at_all():
    assert written(parse(b"f:1:1\r\n 1: 1\r\n 2: 5")) == b"f:1:1\n 1: 1\n 2: 5\n"


def test_what_comes_twice_is_added_up():
    profile = parse(b"f:1:2\n 1: 1 g:1\n 1: 2 g:3\n 2: h:1\n  1: 1\nf:3:4\n 2: h:5\n  1: 5\n")
    assert written(profile) == b"f:4:6\n 1: 3 g:4\n 2: h:6\n  1: 6\n"


def test_names_may_hold_blanks_and_colons():
    content = (
        b"std::vector<char *, a::b>::f(int):5:1\n"
        b" 1: 1437 _M_construct<char *>:1000 string_view<std::allocator<char> >:437 x::5\n"
        b" 2: a::b<int, 3>:7\n"
    )
    function = parse(content).function("std::vector<char *, a::b>::f(int)")
    assert function.call_targets[1, 0] == {
        "_M_construct<char *>": 1000,
        "string_view<std::allocator<char> >": 437,
        "x:": 5,
    }
    assert written(parse(content)) == content


def test_several_blanks_part_call_targets():
    assert parse(b"f:5:1\n 130: 7  foo:3  bar:2\n").function("f").call_targets == {
        (130, 0): {"foo": 3, "bar": 2}
    }


def test_virtual_tables_are_written_once():
    content = (
        b"f:9:1\n 7: 5\n 7: vtables _ZTVx:7 \n 7: g:1\n  1: 1\n"
        b" 8: g:1\n  1: 1\n 8: vtables _ZTVy:8 \n 9: vtables _ZTVz:9 \n"
    )
    assert written(parse(content)) == content


def test_numbers_of_hashed_names_are_written_in_decimal():
    profile = SampleProfile()
    profile.function(2**64 - 1).add_call((1, 0), 77, 5)
    assert written(profile) == b"18446744073709551615:0:0\n 1: 0 77:5\n"


@pytest.mark.parametrize(
    ("content", "line", "part"),
    [
        (b"f\n", 1, "FUNCTION:SAMPLES:HEAD_SAMPLES"),
        (b"f:1\n", 1, "FUNCTION:SAMPLES:HEAD_SAMPLES"),
        (b":1:1\n", 1, "FUNCTION:SAMPLES:HEAD_SAMPLES"),
        (b"f:1:-1\n", 1, "FUNCTION:SAMPLES:HEAD_SAMPLES"),
        (b"f:1:\xd9\xa3\n", 1, "FUNCTION:SAMPLES:HEAD_SAMPLES"),
        (b"f:18446744073709551616:1\n", 1, "larger"),
        (b"f:1:" + b"9" * 9999 + b"\n", 1, "FUNCTION:SAMPLES:HEAD_SAMPLES"),
        (b" 1: 1\n", 1, "before the first function"),
        (b"f:1:1\n 1:1\n", 2, "LINE"),
        (b"f:1:1\n 1: \n", 2, "INLINED_FUNCTION"),
        (b"f:1:1\n 1: g\n", 2, "INLINED_FUNCTION"),
        (b"f:1:1\n 1: 1x\n", 2, "INLINED_FUNCTION"),
        (b"f:1:1\n 1: 1 g\n", 2, "NAME:COUNT"),
        (b"f:1:1\n 1: 1 g:\n", 2, "NAME:COUNT"),
        (b"f:1:1\n 1: 1 :5\n", 2, "NAME:COUNT"),
        (b"f:1:1\n 1: 1 g:5 \n", 2, "NAME:COUNT"),
        (b"f:1:1\n 1: 1 g:18446744073709551616\n", 2, "larger"),
        (b"f:1:1\n 65536: 1\n", 2, "larger than 65535"),
        (b"f:1:1\n 1.4294967296: 1\n", 2, "larger"),
        (b"f:1:1\n -1: 1\n", 2, "LINE"),
        (b"f:1:1\n 1.: 1\n", 2, "LINE"),
        (b"f:1:1\n 1: vtables x\n", 2, "NAME:COUNT"),
        (b"f:1:1\n  1: 1\n", 2, "too far"),
        (b"f:1:1\n 1: g:1\n   1: 1\n", 3, "too far"),
        (b"f:1:1\n !CFGChecksum: x\n", 2, "LINE"),
        (b"f:1:1\n !Nonsense: 1\n", 2, "LINE"),
        (b"f:1:1\n !CFGChecksum: 1\n 1: 1\n", 3, "metadata"),
        (b"f:1:1\n 1: 1\n[f]:1:1\n", 3, "calling context"),
        (b"[f:1:2 @ g]:1:1\n", 1, "CALLER"),
        (b"[f @ :2]:1:1\n", 1, "CALLER"),
        (b"\x7fELF\x02\x01\n", 1, "FUNCTION"),
        (b"1 main 6 1 main d 0 99\n", 1, "FUNCTION"),
    ],
)
def test_an_error_names_the_line(content, line, part):
    with pytest.raises(InputError) as caught:
        parse(content)
    assert caught.value.where == f"x.prof:{line}"
    assert part in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_name_with_a_line_break_is_refused():
    profile = SampleProfile()
    profile.function("a\nb")
    with pytest.raises(OutputError, match="line break"):
        written(profile)


def test_deep_nests_are_read_written_and_merged_up_to_a_limit():
    lines = [b"f:1:1\n"]
    lines += [b" " * (depth + 1) + b"1: g:1\n" for depth in range(DEEPEST_INLINING)]
    content = b"".join(lines)
    profile = parse(content)
    assert written(profile) == content
    profile.merge(parse(content))
    assert profile.function("f").total == 2
    with pytest.raises(InputError, match="deep"):
        parse(content + b" " * (DEEPEST_INLINING + 1) + b"1: g:1\n")


def test_no_regular_expression_backtracks_without_bound():
    start = time.process_time()
    for line in (b" 1: 1 " + b"a:" * 200_000, b" 1: 1 " + b"a:1x" * 100_000, b" " * 500_000 + b"!"):
        with pytest.raises(InputError):
            parse(b"f:1:1\n" + line + b"\n")
    for line in (b"a:" * 200_000, b"[" + b"a:" * 200_000, b"f:1:" + b"1" * 400_000):
        with pytest.raises(InputError):
            parse(line + b"\n")
    with pytest.raises(InputError):
        parse(b"f:1:1\n 1: vtables " + b"a " * 200_000)
    assert time.process_time() - start < 5


@given(profiles() | profiles(is_cs=True) | profiles(is_probe_based=True, attributes=(0, 1, 2, 7)))
def test_any_profile_survives(profile):
    again = parse(written(profile))
    assert again == SampleProfile(
        functions={function.key: function for function in profile.ordered()},
        is_probe_based=profile.is_probe_based,
        is_cs=profile.is_cs,
        is_preinlined=profile.is_preinlined,
    )


@given(
    st.binary(max_size=300)
    | st.text("f:1 .!#[]@\nvtables CFGChecksum", max_size=300).map(str.encode)
    | st.lists(st.sampled_from(PROFILE.splitlines(keepends=True)), max_size=9).map(b"".join)
)
def test_any_input_is_read_or_refused(content):
    try:
        profile = parse(content)
    except InputError:
        return
    assert parse(written(profile)) == profile


@with_tools
@given(
    profiles(has_vtables=True)
    | profiles(is_cs=True, attributes=(0, 1, 2))
    | profiles(is_probe_based=True, attributes=(0, 1, 4))
)
def test_llvm_profdata_writes_the_same_text(tool, run, tmp_path, profile):
    llvm_text.write(profile, tmp_path / "a")
    merge = (tool("llvm-profdata-22"), "merge", "--sample", "--text")
    run(*merge, tmp_path / "a", "-o", tmp_path / "b", errors="replace")
    assert (tmp_path / "b").read_bytes() == (tmp_path / "a").read_bytes()


@pytest.mark.parametrize("name", CORPUS)
def test_real_profiles_are_written_back_byte_for_byte(corpus, tmp_path, name):
    path = corpus(name)
    llvm_text.write(llvm_text.read(path), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_llvm_profdata_shows_a_real_profile_as_we_wrote_it(corpus, tool, run, tmp_path):
    path = corpus("sqlite/sq.llvm-profgen-22.prof.zst")
    llvm_text.write(llvm_text.read(path), tmp_path / "again")
    show = (tool("llvm-profdata-22"), "show", "--sample")
    assert run(*show, tmp_path / "again").stdout == run(*show, path).stdout
