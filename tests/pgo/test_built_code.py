"""Programs that clang and GCC built, told apart by their code and by who chose its level."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lbr2pgo.pgo.built_code import RECORD_FLAGS, same_code, winning_levels
from lbr2pgo.program.elf.image import Image

INTERP = Path(__file__).parents[2] / "testbins" / "src" / "interp.c"


@pytest.fixture
def built(tmp_path: Path, tool: Callable[[str], str]) -> Callable[..., Path]:
    """`built("a", "-O2")`: what clang, or another compiler, makes of the interpreter."""
    shutil.copy(INTERP, tmp_path)

    def make(name: str, *flags: str, compiler: str = "clang-22") -> Path:
        command = [tool(compiler), *flags, "interp.c", "-o", name]
        subprocess.run(command, cwd=tmp_path, check=True)
        return tmp_path / name

    return make


def test_code_is_the_same_whatever_else_differs(built: Callable[..., Path]) -> None:
    plain, other = (
        built(name, "-O2", *more, "-Wl,--build-id=0x" + number)
        for name, number, more in (("a", "11", ()), ("b", "22", ("-g", *RECORD_FLAGS)))
    )
    assert Image.open(plain).build_id != Image.open(other).build_id
    assert plain.read_bytes() != other.read_bytes()
    assert same_code(plain, other)
    assert not same_code(plain, built("c", "-O1"))


@pytest.mark.parametrize("compiler", ["clang-22", "gcc"])
@pytest.mark.parametrize("more", [(), ("-flto",)], ids=["plain", "lto"])
def test_the_last_level_of_a_command_line_wins(
    built: Callable[..., Path], compiler: str, more: tuple[str, ...]
) -> None:
    more = (*more, "-fuse-ld=lld") if compiler == "clang-22" else more
    build = built("a", "-O1", *RECORD_FLAGS, "-O2", *more, compiler=compiler)
    assert winning_levels(build, ("-g", "-O1")) == ("-O2",)
    assert winning_levels(build, ("-O1", "-O2")) == ()
    assert winning_levels(build, ("-fno-inline",)) == ()


def test_nothing_won_where_nothing_was_recorded(built: Callable[..., Path]) -> None:
    assert winning_levels(built("a", "-O2"), ("-O1",)) == ()
