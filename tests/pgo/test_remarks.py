from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lbr2pgo.pgo.flags import BuildFlags, with_remarks
from lbr2pgo.pgo.remarks import beside, inlining, keep_remarks
from lbr2pgo.support.errors import InputError

SOURCE = """\
static __attribute__((noinline)) int apart(int x) { return x * x + 1; }
static int small(int x) { return apart(x) + 2; }
int main(int n, char **words) { return small(n); }
"""


@pytest.fixture
def build(tmp_path: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that clang compiled with remarks, in the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("src").mkdir()
    Path("src/a.c").write_text(SOURCE)
    flags = with_remarks(BuildFlags(("-O2",), ()))
    subprocess.run([tool("clang-22"), *flags.compile, "-c", "src/a.c", "-o", "src/a.o"], check=True)
    subprocess.run([tool("clang-22"), "src/a.o", "-o", "app"], check=True)
    return tmp_path / "app"


def test_what_clang_said_is_told_by_function_and_caller(build: Path) -> None:
    assert keep_remarks(build, [Path.cwd()], 0, Path("work")) == 1
    said = inlining(build)
    assert said["small", "main"].startswith("inlined (cost=")
    assert said["apart", "main"].startswith("not inlined: it should never be inlined")


def test_they_are_moved_away_and_those_of_the_build_before_forgotten(build: Path) -> None:
    beside(build).mkdir()
    (beside(build) / "0.old.opt.yaml").write_text("")
    keep_remarks(build, [Path.cwd()], 0, Path("work"))
    assert not list(Path("src").glob("*.yaml"))
    assert [path.name for path in beside(build).iterdir()] == ["0.a.opt.yaml"]


def test_older_ones_and_those_of_other_builds_stay_where_they_are(build: Path) -> None:
    os.utime("src/a.opt.yaml", (1000, 1000))
    Path("work").mkdir()
    Path("work/b.opt.yaml").write_text("")
    assert keep_remarks(build, [Path.cwd()], 2000, Path("work")) == 0
    assert Path("src/a.opt.yaml").exists()
    assert Path("work/b.opt.yaml").exists()


def test_where_nothing_was_kept_nothing_was_said(tmp_path: Path) -> None:
    assert inlining(tmp_path / "app") == {}


def remark(outcome: str, reason: str) -> str:
    return (
        f"--- !{outcome}\nPass: inline\nName: X\nFunction: main\nArgs:\n  - Callee: f.llvm.12\n"
        f"  - String: ' into '\n  - Caller: main\n  - String: ' with {reason} at callsite main;'\n"
        "...\n"
    )


def kept(build: Path, text: str) -> None:
    beside(build).mkdir()
    (beside(build) / "0.a.opt.yaml").write_text(text)


def test_of_a_pair_that_was_inlined_in_places_that_is_told(tmp_path: Path) -> None:
    refused, done = remark("Missed", "(cost=9)"), remark("Passed", "(cost=1)")
    kept(tmp_path / "app", refused * 3 + done + remark("Analysis", "cost=no"))
    assert inlining(tmp_path / "app") == {("f", "main"): "inlined (cost=1)"}


@pytest.mark.parametrize(
    "text",
    ["--- !Passed\nArgs: {", "no remark", "--- !Passed\n- 1\n", "\x00", "--- !Passed\nArgs: 3"],
)
def test_what_is_no_remark_is_refused_with_its_file(tmp_path: Path, text: str) -> None:
    kept(tmp_path / "app", text)
    with pytest.raises(InputError) as caught:
        inlining(tmp_path / "app")
    assert caught.value.where is not None
    assert caught.value.where.endswith("0.a.opt.yaml")
    assert "--remarks" in caught.value.cure
