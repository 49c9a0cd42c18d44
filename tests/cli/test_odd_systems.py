"""Machines that lack what one expects: caches, a home, a locale, write permission."""

from __future__ import annotations

import os
import resource
import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import lbr2pgo

ROOT = Path(__file__).parents[2]
TESTBINS = ROOT / "testbins"
ELF = TESTBINS / "x86-64" / "interp.pie"
RECORDING = TESTBINS / "recordings" / "x86-64-interp.pie.perf.data"

Done = subprocess.CompletedProcess[str]


def convert(environment: Mapping[str, str], **options: object) -> Done:
    command = [sys.executable, "-m", "lbr2pgo", "convert", RECORDING, "--binary", ELF]
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [*map(str, command), "--llvm", "-"], env=dict(environment), capture_output=True,
        text=True, errors="surrogateescape", **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def good() -> str:
    done = convert(os.environ)
    assert done.returncode == 0
    return done.stdout


@pytest.mark.parametrize(
    "changes",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"},
        {"HOME": "/nonexistent"},
        {"TERM": "dumb", "COLUMNS": "1"},
        {"TMPDIR": "/nonexistent"},
        {"PYTHONWARNINGS": "error::RuntimeWarning"},
        {"PYTHONOPTIMIZE": "2"},
    ],
)
def test_an_odd_environment(changes: dict[str, str], good: str) -> None:
    done = convert({**os.environ, **changes})
    assert done.returncode == 0, done.stderr
    assert done.stdout == good


def test_no_environment_at_all(good: str) -> None:
    done = convert({})
    assert done.returncode == 0, done.stderr
    assert done.stdout == good


def test_a_read_only_package_and_no_home(tmp_path: Path, good: str) -> None:
    """A file stands where the home would be, which hinders root as well."""
    package = tmp_path / "read-only" / "lbr2pgo"
    shutil.copytree(
        Path(lbr2pgo.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    for path in [package.parent, *package.parent.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    before = sorted(package.rglob("*"))
    occupied = tmp_path / "file"
    occupied.touch()
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(occupied / "home"),
        "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    done = convert(environment, cwd="/")
    assert done.returncode == 0, done.stderr
    assert done.stdout == good
    assert sorted(package.rglob("*")) == before


@pytest.mark.parametrize("megabytes", range(24, 200, 8))
def test_too_little_memory_is_said(tmp_path: Path, good: str, megabytes: int) -> None:
    """`ulimit -v`, from what Python needs by itself to more than enough."""
    old = tmp_path / "llvm"
    old.write_text("old")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    command = [sys.executable, "-m", "lbr2pgo", "convert", RECORDING, "--binary", ELF]
    done = subprocess.run(
        [*map(str, command), "--llvm", old], preexec_fn=limit, capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    assert os.listdir(tmp_path) == ["llvm"]
    if done.returncode == 0:
        assert megabytes > 100
        assert old.read_text() == good
        return
    assert done.returncode == 2
    assert megabytes < 192
    assert done.stderr.count("\n") == 2
    assert done.stderr.startswith("lbr2pgo: error: out of memory")
    assert old.read_text() == "old"


def versions() -> list[str]:
    return [f"python3.{minor}" for minor in range(11, 15)]


@pytest.mark.parametrize("name", versions())
def test_every_supported_python_can_compile_the_package(name: str) -> None:
    """Syntax only, as other versions have none of the libraries here."""
    python = _from_pyenv(name) or shutil.which(name)
    if python is None:
        pytest.skip(f"{name} is not installed")
    code = (
        "import ast, pathlib, sys\n"
        "for path in pathlib.Path(sys.argv[1]).rglob('*.py'): ast.parse(path.read_bytes())\n"
    )
    package = Path(lbr2pgo.__file__).parent
    done = subprocess.run([python, "-W", "error", "-c", code, package], capture_output=True)
    assert done.returncode == 0, done.stderr


def _from_pyenv(name: str) -> str | None:
    found = sorted(Path.home().glob(f".pyenv/versions/*/bin/{name}"))
    return str(found[-1]) if found else None


@pytest.mark.parametrize(
    ("place", "value", "says"), [(4, 1, "32-bit"), (5, 2, "big-endian"), (18, 0x15, "machine")]
)
def test_other_kinds_of_elf_are_refused(
    command, tmp_path: Path, place: int, value: int, says: str
) -> None:
    odd = bytearray(ELF.read_bytes())
    struct.pack_into("B", odd, place, value)
    (tmp_path / "odd").write_bytes(odd)
    answer = command("convert", RECORDING, "--binary", tmp_path / "odd")
    assert answer.code == 2
    assert says in answer.err.lower()
