import pytest
from builders.sample_profiles import functions, profiles, text, with_tools
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles.llvm import text as llvm_text
from lbr2pgo.profiles.llvm.sample_names import Frame
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile, add_saturating
from lbr2pgo.support.errors import InputError

MOST = 2**64 - 1


def parse(content):
    return llvm_text.parse(content.encode().splitlines(keepends=True), "x.prof")


def test_sums_stop_at_the_largest_count():
    assert add_saturating(1, 2, 3) == 7
    assert add_saturating(MOST - 1, 1) == MOST
    assert add_saturating(MOST - 1, 2) == MOST
    assert add_saturating(0, MOST, 2) == MOST


def test_functions_are_ordered_by_samples_then_by_name():
    profile = SampleProfile()
    for name, total in (("b", 5), ("z", 9), ("a", 5), (3, 5)):
        profile.function(name).total = total
    assert [function.name for function in profile.ordered()] == ["z", 3, "a", "b"]


def test_a_function_of_a_context_has_the_name_of_its_last_frame():
    profile = SampleProfile(is_cs=True)
    context = (Frame("main", (3, 1)), Frame("f"))
    function = profile.function(context)
    assert function.name == "f"
    assert function.key == context
    assert profile.function(context) is function


def test_calls_are_ordered_by_count_then_by_name():
    function = FunctionSamples("f")
    for name, count in (("b", 1), ("c", 7), ("a", 1), ("b", 0)):
        function.add_call((1, 0), name, count)
    assert function.calls((1, 0)) == [("c", 7), ("a", 1), ("b", 1)]
    assert function.calls((2, 0)) == []
    assert function.locations() == [(1, 0)]


def test_merging_adds_up():
    profile = parse("f:10:2\n 1: 5 g:3\n 2: h:4\n  1: 4\n")
    other = parse("f:1:1\n 1: 1 g:1 k:1\n 2: h:1\n  1: 1\n 2: m:1\n  0: 1\ng:7:7\n 0: 7\n")
    assert profile.merge(other, 2) == 0
    assert text(profile) == (
        b"g:14:14\n 0: 14\nf:12:4\n 1: 7 g:5 k:2\n 2: h:6\n  1: 6\n 2: m:2\n  0: 2\n"
    )


def test_merging_adds_up_virtual_tables():
    profile = parse("f:1:1\n 1: 1\n 1: vtables _ZTVa:5\n")
    profile.merge(parse("f:1:1\n 1: 1\n 1: vtables _ZTVa:1 _ZTVb:2\n"), 3)
    assert profile.function("f").vtables == {(1, 0): {"_ZTVa": 8, "_ZTVb": 6}}


def test_merging_leaves_out_other_code():
    profile = parse("f:10:2\n 1: 5\n 2: h:4\n  1: 4\n  !CFGChecksum: 8\n !CFGChecksum: 7\n")
    same = parse("f:10:2\n 1: 5\n 2: h:4\n  1: 4\n  !CFGChecksum: 9\n !CFGChecksum: 7\n")
    other = parse("f:10:2\n 1: 5\n !CFGChecksum: 6\n")
    assert profile.merge(same) == 1
    assert profile.merge(other) == 1
    assert text(profile) == (
        b"f:20:4\n 1: 10\n 2: h:4\n  1: 4\n  !CFGChecksum: 8\n !CFGChecksum: 7\n"
    )


@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        ("f:1:1\n 1: 1\n", "[f]:1:1\n 1: 1\n", "calling contexts"),
        ("[f]:1:1\n 1: 1\n", "f:1:1\n 1: 1\n", "calling contexts"),
        ("f:1:1\n 1: 1\n", "f:1:1\n 1: 1\n !CFGChecksum: 7\n", "pseudo probes"),
    ],
)
def test_profiles_of_different_kinds_do_not_merge(one, other, what):
    with pytest.raises(InputError, match=what):
        parse(one).merge(parse(other))


def test_flags_and_symbols_are_merged():
    profile = SampleProfile(symbols=frozenset({"a"}))
    profile.merge(SampleProfile(symbols=frozenset({"b"}), is_fs=True, is_partial=True))
    profile.merge(SampleProfile(is_preinlined=True))
    assert profile.symbols == {"a", "b"}
    assert profile.is_fs
    assert profile.is_partial
    assert profile.is_preinlined


@with_tools
@given(
    kinds=st.sampled_from([{}, {"is_probe_based": True}, {"is_cs": True}]),
    data=st.data(),
    weight=st.sampled_from([1, 3, 2**32]),
)
def test_merging_is_llvm_profdatas(tool, run, tmp_path, kinds, data, weight):
    a, b = data.draw(profiles(**kinds)), data.draw(profiles(**kinds))
    for name, profile in (("a", a), ("b", b)):
        llvm_text.write(profile, tmp_path / name)
    merge = [tool("llvm-profdata-22"), "merge", "--sample", "--text", "-o", tmp_path / "c"]
    weights = [f"-weighted-input=1,{tmp_path}/a", f"-weighted-input={weight},{tmp_path}/b"]
    run(*merge, *weights, errors="replace")
    merged = SampleProfile()
    merged.merge(a)
    merged.merge(b, weight)
    assert text(merged) == (tmp_path / "c").read_bytes()


@given(functions("f"), functions("f"), functions("f"))
def test_merging_is_associative(a, b, c):
    def merged(*parts):
        whole = FunctionSamples("f")
        for part in parts:
            whole.merge(part)
        return whole

    assert merged(merged(a, b), c) == merged(a, merged(b, c))
