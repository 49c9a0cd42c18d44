"""Two builds of the interpreter, explained; what is counted is tests/analyses/test_costs.py's."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lbr2pgo.pgo.explain import Explained, explain_builds, find_build
from lbr2pgo.pgo.loop import Loop
from lbr2pgo.pgo.loop_options import LoopOptions
from lbr2pgo.pgo.timing import NOT_TIMED
from lbr2pgo.pgo.training import Training
from lbr2pgo.support.errors import InputError

SOURCE = """\
#include <stdio.h>
INLINED static int twice(int x) { return x * 2 + (x >> 3); }
int main(void) {
    unsigned sum = 0;
    for (int i = 0; i < 1000; i++) sum += twice(i ^ (int)sum);
    printf("%u\\n", sum PLUS);
}
"""


@pytest.fixture
def compiled(
    tmp_path: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Path]:
    """`compiled("a", "noinline")`: a build of a program of one small function, named so."""
    clang = tool("clang-22")
    tool("qemu-x86_64"), tool("ld.lld-22")
    monkeypatch.chdir(tmp_path)
    Path("a.c").write_text(SOURCE)

    def compile_(name: str, attribute: str, *flags: str) -> Path:
        macros = f"-DINLINED=__attribute__(({attribute}))", "-Wl,--build-id"
        plus = () if any("PLUS" in flag for flag in flags) else ("-DPLUS=",)
        words = (clang, "-O2", "-fno-unroll-loops", *macros, *plus, *flags, "a.c", "-o", name)
        subprocess.run(words, check=True)
        return Path(name)

    return compile_


def saved(explained: Explained, table: str) -> dict[object, object]:
    found = next(each for each in explained.tables if each.name == table)
    return dict(zip(found.column("function"), found.column("saved"), strict=True))


def test_static_functions_that_probes_make_unique_are_the_same_ones(
    compiled: Callable[..., Path],
) -> None:
    a = compiled("a", "noinline", "-g1")
    b = compiled("b", "noinline", "-g1", "-fpseudo-probe-for-profiling")
    shutil.copy(a, "app")
    for first, second in ((a, b), (b, a)):
        explained = explain_builds(first, second, Path("app"), "sh -c ./a*p")
        # It does the same in both, and only what differs is told.
        for table in ("explain-functions", "explain-calls"):
            assert not [name for name in saved(explained, table) if "twice" in str(name)]


def test_a_function_that_is_inlined_makes_the_difference(compiled: Callable[..., Path]) -> None:
    a, b = compiled("a", "noinline", "-g1"), compiled("b", "always_inline", "-g1")
    shutil.copy(a, "app")
    explained = explain_builds(a, b, Path("app"), "sh -c ./a*p")
    assert saved(explained, "explain-calls")["twice"] == 2000
    difference = explained.a.totals.taken - explained.b.totals.taken
    assert abs(difference - 2000) < 20  # the loader's own branches differ a little
    assert explained.notes == ()
    assert explained.b.costs.instructions["twice"] >= 2000
    assert Path("app").read_bytes() == a.read_bytes()


def test_without_debug_information_functions_are_symbols(compiled: Callable[..., Path]) -> None:
    a, b = compiled("a", "noinline"), compiled("b", "always_inline", "-g1")
    explained = explain_builds(a, b, a, "./a")
    (note,) = explained.notes
    assert "has no debug information" in note
    assert "twice" not in explained.b.costs.instructions


def test_what_llvm_bolt_laid_out_is_told_by_symbols(
    compiled: Callable[..., Path], tool: Callable[[str], str]
) -> None:
    a = compiled("a", "noinline", "-g1", "-fuse-ld=lld", "-Wl,--emit-relocs")
    subprocess.run([tool("llvm-bolt-22"), a, "-o", "a.bolt"], check=True, capture_output=True)
    explained = explain_builds(a, Path("a.bolt"), a, "./a")
    assert "llvm-bolt" in explained.notes[0]
    assert saved(explained, "explain-calls") == {}


def test_builds_that_write_otherwise_are_not_compared(compiled: Callable[..., Path]) -> None:
    a, b = compiled("a", "noinline"), compiled("b", "noinline", "-DPLUS=+1")
    with pytest.raises(InputError, match="do not write the same: a, b"):
        explain_builds(a, b, Path("a"), "./a")


def test_a_binary_that_the_command_would_not_find_is_said(compiled: Callable[..., Path]) -> None:
    a = compiled("a", "noinline")
    with pytest.raises(InputError, match="not in the command"):
        explain_builds(a, a, Path("app"), "./a")


def test_a_loop_keeps_what_the_compiler_said_of_each_build(
    tmp_path: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool("clang-22"), tool("qemu-x86_64")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CFLAGS", "-O2")
    Path("a.c").write_text(SOURCE.replace("INLINED", "").replace("PLUS", ""))
    build, said = "clang-22 $CFLAGS -c a.c && clang-22 a.o $LDFLAGS -o app", list[str]()
    training = Training(("./app",), 101, True)
    options = LoopOptions(
        build, Path("app"), training, None, probes=True, bolt=False, measure=None, runs=NOT_TIMED,
        work=Path("work"), remarks=True,
    )  # fmt: skip
    loop = Loop(options, said.append)
    loop.run()
    a, b = (find_build(name, Path("work"), Path("app")) for name in ("before", "after"))
    explained = explain_builds(a, b, Path("app"), "./app")
    assert explained.a.remarks["twice", "main"].startswith("inlined (cost=")
    assert ("_ZL5twicei", "main") in explained.b.remarks
    assert not any("-fsave-optimization-record" in each for each in loop.builds[-1].keep)
    assert not any("no remarks" in line for line in said)
    assert not list(Path().glob("*.opt.yaml"))


def test_builds_are_found_by_their_names(tmp_path: Path) -> None:
    for name in ("app.before", "lines/app.before", "lines/app.after", "probes-O1/app.bolt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    names = {"before": "app.before", "plain": "lines/app.before", "lines": "lines/app.after",
             "probes-O1+bolt": "probes-O1/app.bolt"}  # fmt: skip
    for name, path in names.items():
        assert find_build(name, tmp_path, Path("app")) == tmp_path / path
    assert find_build(str(tmp_path / "app.before"), tmp_path, Path("app")).name == "app.before"


def test_a_build_that_is_not_there_is_refused_with_what_is(tmp_path: Path) -> None:
    (tmp_path / "app.before").write_text("")
    with pytest.raises(InputError, match="no such build") as caught:
        find_build("after", tmp_path, Path("app"))
    assert "before" in caught.value.cure
