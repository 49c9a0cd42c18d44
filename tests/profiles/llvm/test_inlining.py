"""What a profile is said to inline, beside what clang tells that it inlined by it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders.fixtures import Tool

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.llvm import text
from lbr2pgo.profiles.llvm.format import LlvmOutput
from lbr2pgo.profiles.llvm.inlining import inlined_copies
from lbr2pgo.profiles.llvm.sample_names import Context, Frame
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.profiles.llvm.sample_weights import with_inlined
from lbr2pgo.profiles.llvm.text import context_text
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software

PROGRAM = """
#include <stdlib.h>
#define NOT_YET __attribute__((noinline))
static long leaf(long x, long k) {
  for (long i = 0; i < (x & 7); i++) x = x % k ? x * 3 + 1 : x / k;
  return x;
}
long step(long x) { return leaf(x, 3) + leaf(x + 1, 5); }
long rare(long x) { return leaf(x, 7) * 3; }
long both(long x) { return x % 100 ? step(x) : rare(x); }
int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 40000, sum = 0;
  for (long i = 0; i < n; i++) sum += both(sum % 1000 + i);
  return sum == 42;
}
"""
LINES = ("-g", "-fdebug-info-for-profiling")
PROBES = (*LINES, "-fpseudo-probe-for-profiling")
CONTEXTS = (*PROBES, "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer")


def profile_of(tmp_path: Path, tool: Tool, flags: tuple[str, ...], contexts: str) -> Path:
    """Of a build in which nothing was inlined: contexts alone can tell copies apart then."""
    tool("qemu-x86_64")
    (tmp_path / "a.c").write_text(PROGRAM)
    built = [tool("clang-22"), "-O2", *flags, "a.c", "-o", "a"]
    if contexts != "off":
        built += ["-fno-inline", "-fno-optimize-sibling-calls"]
    subprocess.run(built, cwd=tmp_path, check=True)
    recording, profile = tmp_path / "perf.data", tmp_path / "a.prof"
    record_software(
        RecordOptions(
            output=recording, command=(str(tmp_path / "a"),), period=997,
            call_graph=contexts != "off",
        )
    )  # fmt: skip
    output = LlvmOutput(profile, contexts=contexts)
    convert(ConvertOptions((recording,), tmp_path / "a", outputs=(output,)))
    return profile


def inlined_by_clang(
    tmp_path: Path, tool: Tool, flags: tuple[str, ...], profile: Path
) -> set[tuple[str, str]]:
    """Callee and outermost caller of each call that the profile's loader inlined."""
    said = subprocess.run(
        [tool("clang-22"), "-O2", *flags, f"-fprofile-sample-use={profile}",
         "-Rpass=sample-profile-inline", "-c", "a.c", "-o", "used.o"],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    ).stderr  # fmt: skip
    return set(re.findall(r"'([^']+)' inlined into '([^']+)' to match profiling context", said))


@pytest.mark.parametrize(
    ("flags", "contexts"), [(LINES, "off"), (PROBES, "off"), (CONTEXTS, "nested")],
    ids=["lines", "probes", "contexts"],
)  # fmt: skip
def test_clang_inlines_what_is_said(
    flags: tuple[str, ...], contexts: str, tmp_path: Path, tool: Tool
) -> None:
    profile = profile_of(tmp_path, tool, flags, contexts)
    copies = inlined_copies(text.read(profile))
    told = {(str(c.context[-1].function), str(c.context[0].function)) for c in copies}
    inlined = inlined_by_clang(tmp_path, tool, flags, profile)
    assert told <= inlined
    assert any("leaf" in callee and caller == "main" for callee, caller in told)
    # Besides, clang inlines what is small, be it cold.
    coldest = min(copy.samples for copy in copies)
    others = {callee for callee, _ in inlined - told}
    assert all(samples < coldest for name, samples in nested(text.read(profile)) if name in others)


def nested(profile: SampleProfile) -> Iterator[tuple[str, int]]:
    """Functions that have counts where they are called, and those."""
    for top in profile.functions.values():
        yield from ((str(each.name), each.total) for each in with_inlined(top) if each is not top)


TEXT = """\
main:1000:1
 1: 10
 2: hot:900
  1: 900
  3: inner:400
   1: 400
 4: cold:1
  1: 1
  2: inner:900
   1: 900
"""


def read(tmp_path: Path, content: str) -> SampleProfile:
    path = tmp_path / "profile"
    path.write_text(content)
    return text.read(path)


def shown(profile: SampleProfile) -> list[tuple[str, int]]:
    return [(context_text(context), samples) for context, samples in inlined_copies(profile)]


def test_hot_copies_are_inlined_whose_callers_are(tmp_path: Path) -> None:
    assert shown(read(tmp_path, TEXT)) == [("main:2 @ hot", 900), ("main:2 @ hot:3 @ inner", 400)]


def test_a_pre_inliner_decides_by_itself(tmp_path: Path) -> None:
    """Bit 2 of the attributes says what it chose, however hot that is."""
    profile = read(
        tmp_path, TEXT.removesuffix("  2: inner:900\n   1: 900\n") + "  !Attributes: 2\n"
    )
    assert profile.is_preinlined
    assert shown(profile) == [("main:4 @ cold", 1)]


def test_contexts_with_counts_of_their_own_are_copies(tmp_path: Path) -> None:
    profile = read(
        tmp_path, "[main]:500:1\n 1: 500\n[main:3 @ f]:400:9\n 1: 400\n[main:5 @ g]:1:1\n 1: 1\n"
    )
    (copy,) = inlined_copies(profile)
    wanted: Context = (Frame("main", (3, 0)), Frame("f"))
    assert copy == (wanted, 400)


def test_an_empty_profile_inlines_nothing(tmp_path: Path) -> None:
    assert inlined_copies(SampleProfile()) == []
