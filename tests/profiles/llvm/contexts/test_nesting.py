"""Profiles with contexts nested into functions, judged by llvm-profgen."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders.context_profiles import (
    HYBRID,
    LINES,
    as_text,
    context_profile,
    inlined,
    line_contexts,
)
from builders.fixtures import Corpus, Tool, Walk
from builders.llvm_profiles import profgen_of_contexts
from builders.outputs import outputs

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.model.compat import OURS, Compat
from lbr2pgo.profiles.llvm.contexts._preinliner import SHOULD_BE_INLINED
from lbr2pgo.profiles.llvm.contexts.line_contexts import LineContexts
from lbr2pgo.profiles.llvm.contexts.nesting import (
    nested,
    with_own_copies,
    with_thin_ones_unmarked,
    without_mere_callers,
)
from lbr2pgo.profiles.llvm.profile_table import CallTargets
from lbr2pgo.profiles.llvm.sample_profile import DUPLICATED_INTO_BASE
from lbr2pgo.profiles.registry import output
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software


@pytest.mark.parametrize("name", HYBRID)
def test_recorded_programs_have_llvm_profgens_profile(
    name: str, corpus: Corpus, tool: Tool, tmp_path: Path
) -> None:
    binary = corpus(f"llvm-profgen/{name}.perfbin")
    recording = corpus(f"llvm-profgen/{name}.perfscript")
    expected = profgen_of_contexts(tool, tmp_path, recording, binary, *LINES)
    assert as_text(nested(inlined(line_contexts(binary, recording)))) == expected


@pytest.mark.parametrize("seed", [*range(6), 8, 20])
def test_random_programs_have_llvm_profgens_profile(
    seed: int, walk: Walk, walked_contexts: Callable[[int], LineContexts], tool: Tool,
    tmp_path: Path,
) -> None:  # fmt: skip
    expected = profgen_of_contexts(tool, tmp_path, *walk(seed)[::-1], *LINES)
    assert as_text(nested(inlined(walked_contexts(seed)))) == expected


def test_a_call_is_counted_where_it_went_or_as_a_call_but_not_twice() -> None:
    text = as_text(nested(context_profile([-1, 0], has_samples=[True, True])))
    assert text == ("f0:17:3\n 1: 1\n 1: f1:10\n  1: 4\n  !Attributes: 2\n !Attributes: 2\n")


def test_what_is_called_from_a_context_without_samples_stands_alone() -> None:
    text = as_text(nested(context_profile([-1, 0, 1], has_samples=[True, False, True])))
    assert [line for line in text.splitlines() if not line.startswith(" ")] == [
        "f0:10:3",
        "f2:10:3",
    ]


def test_nothing_stays_nothing() -> None:
    empty = nested(context_profile([], has_samples=[]))
    assert len(empty) == 0


def text(parents: list[int], was_inlined: tuple[int, ...] = ()) -> str:
    found = context_profile(parents, has_samples=[True] * len(parents), was_inlined=was_inlined)
    return as_text(nested(with_own_copies(found)))


def test_what_is_inlined_anew_stands_alone_as_well_and_says_so() -> None:
    assert text([-1, 0]) == (
        "f0:17:3\n 1: 1\n 1: f1:10\n  1: 4\n  !Attributes: 6\n !Attributes: 2\nf1:10:3\n 1: 4\n"
    )


def test_what_was_inlined_is_in_its_caller_alone() -> None:
    assert "f1:10:3" not in text([-1, 0], was_inlined=(1,))


def test_what_is_inlined_into_it_goes_along() -> None:
    own = text([-1, 0, 1], was_inlined=(2,)).partition("\nf1:")[2]
    assert own == "17:3\n 1: 1\n 1: f2:10\n  1: 4\n  !Attributes: 3\n"


def test_each_of_two_that_are_inlined_into_each_other_stands_alone_once() -> None:
    functions = [line for line in text([-1, 0, 1]).splitlines() if line.startswith("f")]
    assert functions == ["f0:24:3", "f1:17:3", "f2:10:3"]


def standing(**changed: list[int]) -> list[str]:
    """What stands alone of f0, which calls f1 three times, with these columns of contexts."""
    table = context_profile([-1, -1], has_samples=[True, True]).table
    calls = CallTargets(np.array([0]), np.array([1]), np.array([3], np.uint64))
    columns = {name: np.array(values, np.uint64) for name, values in changed.items()}
    body = replace(table.body, count=columns.pop("count"))
    contexts = replace(table.contexts, **columns)
    left = without_mere_callers(replace(table, contexts=contexts, body=body, calls=calls))
    return [line.partition(":")[0] for line in as_text(left).splitlines() if line[0] != " "]


def test_a_function_that_is_known_by_its_calls_alone_is_left_out() -> None:
    assert standing(head=[0, 3], count=[3, 3]) == ["f1"]


def test_a_function_that_ran_or_was_called_stays() -> None:
    assert standing(head=[0, 3], count=[4, 3]) == ["f0", "f1"]
    assert standing(head=[1, 3], count=[3, 3]) == ["f0", "f1"]


def test_a_function_with_copies_inlined_into_it_stays() -> None:
    table = nested(context_profile([-1, 0], has_samples=[True, True]))
    unknown = replace(table.contexts, head=np.zeros(2, np.uint64))
    table = replace(table, contexts=unknown, body=replace(table.body, count=table.body.count * 0))
    assert without_mere_callers(table) is table


def test_nothing_has_no_copies() -> None:
    assert len(nested(with_own_copies(context_profile([], has_samples=[])))) == 0


@pytest.mark.parametrize("seed", range(4))
def test_a_function_has_all_its_calls(
    seed: int, walked_contexts: Callable[[int], LineContexts]
) -> None:
    profile = inlined(walked_contexts(seed), as_llvm=False)
    c = profile.table.contexts
    called: Counter[int] = Counter()
    for name, head, was_inlined in zip(c.name, c.head, profile.attributes & 1, strict=True):
        called[int(name)] += 0 if was_inlined else int(head)
    alone = nested(with_own_copies(profile)).contexts
    rows = np.flatnonzero(alone.parent < 0)
    heads = dict(zip(alone.name[rows].tolist(), alone.head[rows].tolist(), strict=True))
    assert {name: heads[name] for name, count in called.items() if count} == +called


SOURCES = {
    "far.c": "int far(int x, int n) { for (; n; n--) x ^= x << n; return x; }\n",
    "main.c": """
int far(int, int);
int main(void) {
  int s = 0;
  for (int i = 0; i < 20000; i++)
    s += far(i, 1) + far(i, 9);
  return s == 1;
}
""",
}


def test_a_function_of_another_file_stays_hot(tmp_path: Path, tool: Tool) -> None:
    """Without link-time optimisation its caller can't have it inlined, whatever a profile says."""
    clang = tool("clang-22")
    tool("qemu-x86_64")
    flags = ["-O2", "-fpseudo-probe-for-profiling", "-g1"]
    for name, source in SOURCES.items():
        (tmp_path / name).write_text(source)
    program, profile = tmp_path / "app", tmp_path / "app.prof"
    sources = [tmp_path / name for name in SOURCES]
    subprocess.run([clang, *flags, "-Wl,--build-id", *sources, "-o", program], check=True)
    record_software(
        RecordOptions(
            output=tmp_path / "perf.data", command=(str(program),), period=101, call_graph=True,
            emulate=True,
        )
    )  # fmt: skip
    wanted = outputs(llvm=profile)
    convert(ConvertOptions((tmp_path / "perf.data",), program, outputs=wanted))
    assert re.search(r"\n \d+: far:", profile.read_text())
    words = [clang, *flags, f"-fprofile-sample-use={profile}", "-S", "-emit-llvm", "-o", "-"]
    code = subprocess.run(
        [*words, sources[0]], capture_output=True, text=True, check=True
    ).stdout  # fmt: skip
    (entered,) = [line for line in code.splitlines() if '"function_entry_count"' in line]
    assert int(entered.rpartition(" ")[2].rstrip("}")) > 100


def test_thin_copies_are_left_to_the_compiler(walk: Walk) -> None:
    """Marks alone change, and those of copies with 0.2 % of the samples stay."""
    unmarked = left = 0
    for seed in range(6):
        before = nested(with_own_copies(inlined(line_contexts(*walk(seed)), as_llvm=False)))
        after = with_thin_ones_unmarked(before)
        assert before.attributes is not None
        assert after.attributes is not None
        marked, kept = (
            each & SHOULD_BE_INLINED != 0 for each in (before.attributes, after.attributes)
        )
        total, is_nested = before.contexts.total, before.contexts.parent >= 0
        is_thin = is_nested & (total < 0.002 * int(total[~is_nested].sum()))
        assert np.array_equal(kept, marked & ~is_thin)
        assert as_text(replace(after, attributes=before.attributes)) == as_text(before)
        unmarked, left = unmarked + int((marked & is_thin).sum()), left + int(kept.sum())
    assert unmarked > 5
    assert left > 5


def test_llvm_profgen_has_them_inlined(walk: Walk, tmp_path: Path) -> None:
    """Those that are left to the compiler say alone that they have a copy of their own."""
    left = Counter[bool]()
    for seed in range(3):
        binary, recording = walk(seed)
        for compat in (OURS, Compat(frozenset({"llvm-profgen"}))):
            made = output("llvm", tmp_path / "out", contexts="nested")
            convert(ConvertOptions((recording,), binary, outputs=(made,), compat=compat))
            marks = f"!Attributes: {DUPLICATED_INTO_BASE}\n"
            left[compat == OURS] += (tmp_path / "out").read_text().count(marks)
    assert left[True] > 0
    assert left[False] == 0
