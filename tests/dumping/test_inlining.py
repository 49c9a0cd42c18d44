from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from builders.fixtures import Tool

from lbr2pgo.cli import main
from lbr2pgo.dumping.inlining import lines
from lbr2pgo.profiles.llvm import extbinary, text
from lbr2pgo.support.errors import InputError

TEXT = """\
main:1000:1
 1: 100
 2: hot:900
  1: 500
  3.1: inner:400
   1: 400
"""


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "profile"
    path.write_text(TEXT)
    return path


def test_copies_are_shown_with_their_samples(profile: Path) -> None:
    assert list(lines(profile)) == [
        "     samples  copy",
        "         900  main:2 @ hot",
        "         400  main:2 @ hot:3.1 @ inner",
        "copies: 2, of 2 functions",
    ]


def test_one_function_may_be_asked_for_and_names_be_hashes(profile: Path, tmp_path: Path) -> None:
    shown = list(lines(profile, "inner"))
    assert shown[1:] == ["         400  main:2 @ hot:3.1 @ inner", "copies: 1, of 1 function"]
    hashed = tmp_path / "hashed"
    extbinary.write(text.read(profile), hashed, extbinary.Options(md5_names=True))
    assert len(list(lines(hashed, "inner"))) == len(shown)


def test_a_program_tells_how_large_the_functions_are(
    profile: Path, tmp_path: Path, tool: Tool
) -> None:
    source = tmp_path / "a.c"
    source.write_text("int hot(int x) { return x * 3; }\nint main(void) { return hot(2); }\n")
    program = tmp_path / "a"
    subprocess.run([tool("clang-22"), "-O1", source, "-o", program], check=True)
    shown = list(lines(profile, None, program))
    assert shown[0] == "     samples     bytes  copy"
    size = int(shown[1].split()[1])
    assert 0 < size < 40
    assert shown[2].split()[1] == "-"
    assert f"of 2 functions; {size} bytes beside " in shown[3]
    assert shown[4] == "of these, 1 whose callee has no code of its own to measure"


def test_functions_have_their_names_in_the_source(tmp_path: Path, tool: Tool) -> None:
    """A profile by probes has mangled names of static functions, which a plain build has not."""
    inner = "_ZL4workii.__uniq.189702194130118823156495581805298510048"
    path = tmp_path / "profile"
    path.write_text(TEXT.replace("inner", inner))
    source = tmp_path / "a.c"
    source.write_text(
        "static __attribute__((noinline)) int work(int a, int b) { return a / b; }\n"
        "int main(int c, char **v) { return work(c, 3); }\n"
    )
    program = tmp_path / "a"
    subprocess.run([tool("clang-22"), "-O1", source, "-o", program], check=True)
    _, hot, shown, *_ = lines(path, None, program)
    assert hot.split()[1] == "-"
    samples, size, copy = shown.split(maxsplit=2)
    assert (samples, copy) == ("400", "main:2 @ hot:3.1 @ work")
    assert 0 < int(size) < 40


def test_other_profiles_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "fdata"
    path.write_text("1 main 3 1 callee 0 2 10\n")
    with pytest.raises(InputError, match="is no sample profile of LLVM's"):
        lines(path)


def test_the_command_shows_them(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", "profile", str(profile), "--inlining"]) == 0
    assert "main:2 @ hot" in capsys.readouterr().out
