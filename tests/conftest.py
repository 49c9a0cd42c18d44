"""Fixtures for real inputs and real tools; what is missing skips with a reason."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from lbr2pgo.cli import main

if TYPE_CHECKING:
    from builders.bolt import Assemble

    from lbr2pgo.program.program import Program

REPOSITORY = Path(__file__).parent.parent
CORPUS = REPOSITORY.parent / "shared" / "corpus"
# For `import builders`: pytest's import mode keeps this tree off the path.
sys.path.insert(0, str(Path(__file__).parent))

collect_ignore = ["mutants.py"]  # a program, which needs what only `make mutants` does


# The suite tries the same examples every time, so that it fails for what was changed only; other
# ones are tried by `--hypothesis-profile=random`, and what they find becomes an example.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None)
settings.load_profile("same")
# It would also try the numbers in those modules of ours that happen to be loaded by then: other
# ones for each order of the tests, and each split among workers.
providers._get_local_constants = lambda: providers._local_constants

# Thousands of programs under test import the package: where the environment forbids them to keep
# what they compile, each compiles all of it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# How wide a terminal the suite runs in is nothing to what it tests.
os.environ.pop("COLUMNS", None)

# A shell that runs the suite in the background has its children ignore Ctrl-C, which they would
# hand on to every program under test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# So does nohup with a hangup. The suite goes on ignoring that, but handlers are not handed on.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda _number, _frame: None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run files with slow tests first: what a worker begins last should not take long."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`corpus("sqlite/sq.zst")`: path of a corpus file, unpacked if its name ends in .zst."""
    from builders.zstd import zstd

    unpacked: dict[str, Path] = {}

    def find(name: str) -> Path:
        path = CORPUS / name
        if not path.exists():
            pytest.skip(f"the corpus file {name} is not beside the project (../shared/corpus)")
        if path.suffix != ".zst":
            return path
        if name not in unpacked:
            target = tmp_path_factory.mktemp("corpus") / path.stem
            with zstd.open(path) as packed, target.open("wb") as plain:
                shutil.copyfileobj(packed, plain)
            target.chmod(0o755)
            unpacked[name] = target
        return unpacked[name]

    return find


@pytest.fixture(scope="session")
def tool() -> Callable[[str], str]:
    """`tool("llvm-profdata-22")`: path of an installed program, or a skip that names it."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is None:
            pytest.skip(f"{name} is not installed (make toolchain, as root)")
        return path

    return find


@pytest.fixture(scope="session")
def run() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command, give its output as text, fail with its stderr if it fails."""

    def call(
        *command: object, check: bool = True, **options: object
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(  # type: ignore[call-overload]
            [str(part) for part in command], capture_output=True, text=True, **options
        )
        assert not check or done.returncode == 0, f"{command}: {done.stderr}"
        return done  # type: ignore[no-any-return]

    return call


@pytest.fixture(scope="session")
def link(
    tmp_path_factory: pytest.TempPathFactory,
    tool: Callable[[str], str],
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> Callable[..., Path]:
    """`link(assembly, machine="x86-64")`: a program of this assembly, given as text or a path."""

    def build(assembly: str | Path, *flags: str, machine: str = "x86-64") -> Path:
        target = tmp_path_factory.mktemp("linked") / "program"
        source = target.with_suffix(".s")
        source.write_text(assembly if isinstance(assembly, str) else assembly.read_text())
        triple = f"--triple={machine.replace('-', '_')}-linux-gnu"
        extensions = "+m,+a,+f,+d,+c,+v" if machine == "riscv64" else "+all"
        run(tool("llvm-mc-22"), triple, f"--mattr={extensions}", "--filetype=obj", source, "-o",
            target.with_suffix(".o"))  # fmt: skip
        run(tool("ld.lld-22"), target.with_suffix(".o"), "-o", target, *flags)
        return target

    return build


@pytest.fixture(scope="session")
def compiled(
    tmp_path_factory: pytest.TempPathFactory,
    tool: Callable[[str], str],
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> Callable[..., Path]:
    """`compiled("gcc", source, "-O2")`: a program of this source, which is text."""

    def build(compiler: str, source: str, *flags: str) -> Path:
        target = tmp_path_factory.mktemp("compiled") / "program"
        file = target.with_suffix(".cc" if "++" in compiler else ".c")
        file.write_text(source)
        run(tool(compiler), file, *flags, "-o", target, cwd=target.parent)
        return target

    return build


class _TestFailedError(Exception):
    """The traceback of a failed test holds on to what it had open."""


@pytest.fixture
def nothing_is_left(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """No command leaves a temporary or unfinished file, a process or an open file behind.

    This is not asked of a test that failed otherwise.
    """
    from builders.leaks import leaving_nothing

    spool = tmp_path_factory.mktemp("spool")
    monkeypatch.setenv("TMPDIR", str(spool))
    monkeypatch.setattr(tempfile, "tempdir", None)
    failed = request.session.testsfailed
    with suppress(_TestFailedError), leaving_nothing(spool, tmp_path):
        yield
        if request.session.testsfailed > failed:
            raise _TestFailedError


@dataclass(frozen=True)
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str


Command = Callable[..., Answer]


@pytest.fixture
def command(capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    """Run lbr2pgo in this process; no answer may ever hold a traceback or a control character."""

    def run(*words: object) -> Answer:
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:  # argparse's way to refuse
            code = int(end.code or 0)
        captured = capfdbinary.readouterr()
        out, err = (text.decode(errors="surrogateescape") for text in captured)
        assert "Traceback" not in err
        assert not set(err) & set(map(chr, [*range(10), *range(11, 32), 0x7F]))
        return Answer(code, out, err)

    return run


@pytest.fixture
def assemble(tmp_path: Path, tool: Callable[[str], str]) -> Assemble:
    """`assemble(source, *flags)`: a program of this assembly, linked with these flags."""
    from lbr2pgo.program.program import Program

    number = count()

    def link(source: str, *flags: str) -> Program:
        at = tmp_path / f"program{next(number)}"
        parts = at.with_suffix(".s"), at.with_suffix(".o")
        parts[0].write_text(f".text\n{source}\n")
        subprocess.run([tool("clang-22"), "-c", parts[0], "-o", parts[1]], check=True)
        subprocess.run([tool("ld.lld-22"), *flags, parts[1], "-o", at], check=True)
        return Program.open(at)

    return link
