"""Sample profiles that are meant to be committed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from builders.fixtures import TESTBINS, Run, Tool
from builders.recordings import PIE, RECORDING
from builders.sample_profiles import parse, profiles, text, with_tools
from hypothesis import given
from hypothesis import strategies as st

import lbr2pgo
from lbr2pgo.profiles.llvm import text as llvm_text
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.profiles.llvm.stable import in_steps, step_below

EXACT = Path(str(RECORDING).replace(".perf.data", ".exact.npz"))


def written(profile: SampleProfile) -> bytes:
    stream = io.BytesIO()
    llvm_text.write(in_steps(profile), stream, by_name=True)
    return stream.getvalue()


@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 2**64 - 1)).map(sorted))
def test_a_step_is_near_and_crosses_no_border(count: int, borders: list[int]) -> None:
    step = step_below(count, borders)
    assert count - count // 10_000 - 1 < step <= count
    assert [border <= count for border in borders] == [border <= step for border in borders]
    assert step_below(step, borders) == step


@with_tools
@given(profiles() | profiles(is_cs=True) | profiles(is_probe_based=True, has_vtables=True))
def test_nothing_but_the_steps_is_lost(profile: SampleProfile) -> None:
    assert text(parse(written(profile))) == text(parse(text(in_steps(profile))))


@with_tools
@given(profiles())
def test_functions_stand_by_name(profile: SampleProfile) -> None:
    heads = [line for line in written(profile).split(b"\n") if line[:1] not in (b"", b" ")]
    names = [line.rsplit(b":", 2)[0] for line in heads]
    assert names == sorted(names)


def test_a_function_that_grows_stays_in_its_place() -> None:
    small, large = (b"b:9:1\n 1: 9\na:%d:1\n 1: %d\n" % (n, n) for n in (5, 50))
    assert written(parse(small)).replace(b"5", b"50") == written(parse(large))


def test_the_compiler_makes_the_same_code_of_it(tool: Tool, run: Run, tmp_path: Path) -> None:
    """Of a recording that is long enough for counts to go in steps."""
    tool("qemu-x86_64")
    recording, plain, steps = (tmp_path / name for name in ("data", "plain.prof", "stable.prof"))
    lbr2pgo.record([PIE, "40"], output=recording, period=499, emulate=True)
    lbr2pgo.convert(recording, PIE, llvm=plain)
    lbr2pgo.convert(recording, PIE, llvm=steps, stable=True)
    assert {*plain.read_text().splitlines()} != {*steps.read_text().splitlines()}
    code = []
    for profile in (plain, steps, None):
        made = tmp_path / "interp.o"
        flags = () if profile is None else (f"-fprofile-sample-use={profile}",)
        run(tool("clang-22"), "-O2", "-g1", "-fdebug-info-for-profiling", *flags, "-c",
            TESTBINS / "src" / "interp.c", "-o", made)  # fmt: skip
        run(tool("llvm-objcopy-22"), "--strip-debug", made)
        code.append(made.read_bytes())
    assert code[0] == code[1] != code[2]


def test_exact_counts_stay_as_they_are(tmp_path: Path) -> None:
    plain, steps = tmp_path / "plain.prof", tmp_path / "stable.prof"
    lbr2pgo.convert(EXACT, PIE, llvm=plain)
    lbr2pgo.convert(EXACT, PIE, llvm=steps, stable=True)
    lines = plain.read_bytes().splitlines()
    assert sorted(steps.read_bytes().splitlines()) == sorted(lines)
    assert any(int(line.split(b":")[1]) > 10**5 for line in lines if line[:1] != b" ")


def test_only_text_is_committed(tmp_path: Path) -> None:
    with pytest.raises(lbr2pgo.InputError, match="--stable is text"):
        lbr2pgo.convert(RECORDING, PIE, llvm=tmp_path / "x", stable=True, llvm_format="extbinary")
