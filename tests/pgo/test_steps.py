from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from lbr2pgo.pgo.flags import WantedFlags, layout_flags, plain_flags
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
    command = f'echo "$CFLAGS $LDFLAGS" > {binary}'
    run_build(command, PLAIN, binary, said.append, ByVariables(), tmp_path / "log")
    assert "-fdebug-info-for-profiling" in binary.read_text()
    assert "-Wl,--build-id" in binary.read_text()
    (line,) = said
    assert line.startswith("   CFLAGS='")


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., list[str]]:
    """`build("make")`: what it says meanwhile; the program is `a`, the log `log`."""

    def run(command: str) -> list[str]:
        said: list[str] = []
        log = tmp_path / "log"
        run_build(command, PLAIN, tmp_path / "a", said.append, ByVariables(), log)
        return said

    return run


def test_the_compiler_that_the_build_called_is_named_and_the_one_that_is_there(
    tmp_path: Path,
    tool: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    build: Callable[..., list[str]],
) -> None:
    tool("gcc")
    monkeypatch.setenv("CC", tool("clang-22"))
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "Makefile").write_text("CC = gcc\na: a.c\n\t$(CC) $(CFLAGS) a.c -o a\n")
    with pytest.raises(InputError, match="code 2: gcc does not know -fdebug-info") as caught:
        build(f"make -C {tmp_path}")
    assert "the clang that is there: CC=clang-22 CXX=clang++-22;" in str(caught.value.cure)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError) as caught:
        build("echo \"cc: '-fdebug-info-for-profiling'\"; exit 1")
    assert "Install clang;" in str(caught.value.cure)


@pytest.mark.parametrize(
    "said",
    [
        "clang-9: error: unknown argument: '-fdebug-info-for-profiling'",
        "clang-9: error: unknown argument '-fdebug-info-for-profiling'; did you mean '-fdebug'?",
        "clang-9: Fehler: nicht erkannte Kommandozeilenoption »-fdebug-info-for-profiling«",
        "clang-9: erreur: option non reconnue « -fdebug-info-for-profiling »",
    ],
)
def test_compilers_complain_in_many_words(said: str, build: Callable[..., list[str]]) -> None:
    with pytest.raises(InputError, match="code 1: clang-9 does not know -fdebug-info-for-prof"):
        build(f"printf %s {shlex.quote(said)}; exit 1")


@pytest.mark.parametrize(
    ("flag", "cure"),
    [("-fpseudo-probe-for-profiling", "Give --lines"), ("-fbasic-block-address-map", "--bolt")],
)
def test_what_clang_lacks_for_a_target_is_told_with_a_way_round(
    flag: str,
    cure: str,
    tmp_path: Path,
    tool: Callable[[str], str],
    build: Callable[..., list[str]],
) -> None:
    (tmp_path / "a.c").write_text("int f(int); int g(int x) { while (x) x = f(x); return f(1); }")
    clang = f"{tool('clang-22')} --target=riscv64-linux-gnu"
    with pytest.raises(InputError) as caught:
        build(f"{clang} -O1 {flag} -c {tmp_path}/a.c -o {tmp_path}/a")
    assert cure in str(caught.value.cure)


def test_what_a_build_prints_is_in_its_log_and_shown_where_it_fails(
    tmp_path: Path, build: Callable[..., list[str]]
) -> None:
    assert len(build(f"echo well done; touch {tmp_path}/a")) == 1
    with pytest.raises(InputError, match="exit code 7") as caught:
        build("seq 100; exit 7")
    assert caught.value.cure == f"All that it printed is in {tmp_path}/log."
    assert (tmp_path / "log").read_text().splitlines() == ["well done", *map(str, range(1, 101))]


def test_the_end_of_what_a_failed_build_prints_is_shown(tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(InputError):
        run_build(
            "seq 100; exit 7", PLAIN, tmp_path / "a", said.append, ByVariables(), tmp_path / "log"
        )
    assert said[1:] == [str(number) for number in range(71, 101)]


def test_a_build_that_leaves_no_binary_is_refused(build: Callable[..., list[str]]) -> None:
    with pytest.raises(InputError, match="the build left no such program"):
        build("true")


def test_an_interrupted_build_leaves_neither_temporary_files_nor_what_it_started(
    tmp_path: Path, build: Callable[..., list[str]]
) -> None:
    """As clang does, and as `conftest` sees: it is ended before the files that it made are gone."""
    made = tmp_path / "made"
    with pytest.raises(KeyboardInterrupt):
        build(f"mktemp > {made}; kill -INT {os.getpid()}; sleep 60 & wait")
    assert made.read_text().startswith(f"{os.environ['TMPDIR']}/lbr2pgo-")
    assert not Path(made.read_text().strip()).exists()


def test_ccache_looks_into_lists_of_blocks(
    tmp_path: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a new layout of an old path is an old object."""
    tool("ccache"), tool("clang-22"), tool("ld.lld-22")
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "cache"))
    own = tmp_path / "own"
    own.write_text("the user's")
    monkeypatch.setenv("CCACHE_EXTRAFILES", str(own))
    monkeypatch.chdir(tmp_path)
    Path("a.c").write_text(
        "int puts(char *); int main(int n, char **v) { return n > 3 && puts(*v); }"
    )
    clusters, order = Path("cc"), Path("ld")
    order.touch()
    flags = layout_flags(plain_flags(WantedFlags(propeller=True)), clusters, order)
    command = "ccache clang-22 $CFLAGS -c a.c && clang-22 a.o $LDFLAGS -o app"
    objects, said = [], list[str]()
    for blocks in ("0", "0 2", "0"):
        clusters.write_text(f"v1\nf main\nc {blocks}\n")
        run_build(command, flags, Path("app"), said.append, ByVariables(), Path("log"))
        objects.append(Path("a.o").read_bytes())
    assert objects[0] == objects[2] != objects[1]
    assert said[0].startswith(f"   CCACHE_EXTRAFILES={own}:{clusters.resolve()} CFLAGS=")
