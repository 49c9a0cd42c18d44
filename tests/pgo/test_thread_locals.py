"""Thread-local variables, by what clang itself inlines."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.loops import BUILD, MakeLoop

from lbr2pgo.pgo.flags import WantedFlags, profile_flags
from lbr2pgo.pgo.thread_locals import inlined_wrappers, with_inlined_wrappers
from lbr2pgo.program.elf.image import Image

USER = "extern thread_local int level;\nint grown() { return level++; }\n"
OWNER = """\
int first();
thread_local int level = first();
static thread_local int own = first();
int first() { return 3; }
int grown();
int main(int argc, char **) {
  static thread_local int counted = argc;
  return grown() + own + counted++;
}
"""
PROFILE = "_Z5grownv:1000:100\n 1: 100\n"


@pytest.fixture
def compiled(tmp_path: Path, tool: Callable[[str], str]) -> Callable[..., Path]:
    """`compiled("a", "-O2")`: the program, with so many calls of wrappers as its code has."""
    (tmp_path / "user.cc").write_text(USER)
    (tmp_path / "owner.cc").write_text(OWNER)
    (tmp_path / "user.prof").write_text(PROFILE)

    def make(name: str, *flags: str) -> Path:
        words = [tool("clang++-22"), "-O2", *flags, "user.cc", "owner.cc", "-o", name]
        subprocess.run(words, cwd=tmp_path, check=True)
        return tmp_path / name

    return make


def calls_of_wrappers(program: Path) -> int:
    words = ["objdump", "-d", program]
    code = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return sum("call" in line and "<_ZTW" in line for line in code.splitlines())


def test_flags_inline_what_clang_leaves_where_it_uses_samples(
    compiled: Callable[..., Path], tmp_path: Path
) -> None:
    plain, wanted = compiled("plain"), WantedFlags()
    assert calls_of_wrappers(plain) == 0
    by_samples = profile_flags(tmp_path / "user.prof", wanted).compile
    assert calls_of_wrappers(compiled("left", *by_samples)) > 0
    told = profile_flags(tmp_path / "user.prof", with_inlined_wrappers(wanted, plain)).compile
    assert calls_of_wrappers(compiled("inlined", *told)) == 0


def test_each_variable_has_a_flag_but_those_of_functions(compiled: Callable[..., Path]) -> None:
    flags = inlined_wrappers(Image.open(compiled("plain")))
    assert flags == (
        "-mllvm", "-force-attribute=_ZTWL3own:alwaysinline",
        "-mllvm", "-force-attribute=_ZTW5level:alwaysinline",
    )  # fmt: skip


@pytest.mark.parametrize("wanted", [WantedFlags("gcc"), WantedFlags(counts=Path("counts"))])
def test_gcc_and_counters_need_none(wanted: WantedFlags, compiled: Callable[..., Path]) -> None:
    assert with_inlined_wrappers(wanted, compiled("plain")) is wanted


def test_the_users_own_flags_come_last(compiled: Callable[..., Path]) -> None:
    wanted = WantedFlags(use=("-mllvm=-own",))
    assert with_inlined_wrappers(wanted, compiled("plain")).use[-1] == "-mllvm=-own"


def test_the_loop_gives_them_to_the_build_that_uses_the_profile(
    loop: MakeLoop, said: list[str]
) -> None:
    Path("level.cc").write_text("thread_local int level = 1;\n")
    loop(build=BUILD.replace("interp.c", "interp.c level.cc"), last="rebuild").run()
    plain, rebuilt = (line for line in said if "interp.c" in line)
    assert "_ZTW" not in plain
    assert "-fprofile-sample-use" in rebuilt
    assert "-mllvm -force-attribute=_ZTW5level:alwaysinline" in rebuilt
