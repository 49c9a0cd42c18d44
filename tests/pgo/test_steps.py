from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lbr2pgo.pgo.flags import WantedFlags, plain_flags
from lbr2pgo.pgo.reach import ByVariables
from lbr2pgo.pgo.steps import command_words, run_build, with_binary
from lbr2pgo.support.errors import InputError

PLAIN = plain_flags(WantedFlags())


@pytest.mark.parametrize("text", ["./app < in", "a | b", "cd x && ./app", "./app $N", "X=1 ./app"])
def test_what_only_a_shell_understands_goes_through_a_shell(text: str) -> None:
    assert command_words(text) == ("/bin/sh", "-c", text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("out/app 1", "/w/app.before 1"),
        ("./out/app 1", "/w/app.before 1"),
        ("cat in | out/app > out/app.txt", "cat in | /w/app.before > out/app.txt"),
        ("out/app; out/app", "/w/app.before; /w/app.before"),
        ("out/application", None),
        ("/elsewhere/out/app", None),
        ("make check", None),
    ],
)
def test_another_build_takes_the_place_of_the_binary(text: str, expected: str | None) -> None:
    assert with_binary(text, Path("out/app"), Path("/w/app.before")) == expected


def test_a_build_gets_its_flags_in_the_environment(tmp_path: Path) -> None:
    said: list[str] = []
    binary = tmp_path / "app"
    run_build(f'echo "$CFLAGS $LDFLAGS" > {binary}', PLAIN, binary, said.append, ByVariables())
    assert "-fdebug-info-for-profiling" in binary.read_text()
    assert "-Wl,--build-id" in binary.read_text()
    (line,) = said
    assert line.startswith("   CFLAGS='")


def test_a_compiler_too_old_for_a_flag_is_named_when_the_build_fails(
    tmp_path: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", tool("gcc"))
    monkeypatch.setenv("CXX", tool("clang++-22"))
    source = tmp_path / "a.c"
    source.write_text("int main(void) { return 0; }\n")
    build = f"$CC $CFLAGS {source} -o {tmp_path}/a"
    with pytest.raises(InputError, match="gcc does not know -fdebug-info-for-profiling") as caught:
        run_build(build, PLAIN, tmp_path / "a", lambda _: None, ByVariables())
    assert caught.value.cure is not None
    assert "clang" in caught.value.cure


def test_a_build_that_fails_by_itself_is_no_fault_of_the_compiler(
    tmp_path: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", tool("clang-22"))
    monkeypatch.setenv("CXX", tool("clang++-22"))
    with pytest.raises(InputError) as caught:
        run_build("exit 7", PLAIN, tmp_path / "a", lambda _: None, ByVariables())
    assert caught.value.what == "the build failed with exit code 7"


def test_a_build_that_leaves_no_binary_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the build left no such program"):
        run_build("true", PLAIN, tmp_path / "a", lambda _: None, ByVariables())


def test_an_interrupted_build_leaves_neither_temporary_files_nor_what_it_started(
    tmp_path: Path,
) -> None:
    """As clang does, and as `conftest` sees: it is ended before the files that it made are gone."""
    made = tmp_path / "made"
    build = f"mktemp > {made}; kill -INT {os.getpid()}; sleep 60 & wait"
    with pytest.raises(KeyboardInterrupt):
        run_build(build, PLAIN, tmp_path / "a", lambda _: None, ByVariables())
    assert made.read_text().startswith(f"{os.environ['TMPDIR']}/lbr2pgo-")
    assert not Path(made.read_text().strip()).exists()
