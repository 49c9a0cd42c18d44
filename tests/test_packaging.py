"""What `pip install` makes: a wheel that needs no compiler, and one line where none is found.

With the README's way from a checkout to an optimised program, which begins with it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from builders.checkout import check_out
from builders.fixtures import ROOT, TESTBINS, Run, Tool

RECORDING = TESTBINS / "recordings" / "x86-64-interp.pie.perf.data"
ELF = TESTBINS / "x86-64" / "interp.pie"


pytestmark = pytest.mark.slow


def pip(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if "No matching distribution" in done.stderr:
        pytest.skip("pip reaches no package registry to build with")
    return done  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is built of, in a directory of its own."""
    return check_out(tmp_path_factory.mktemp("source"), without=("tests/", "testbins/", "docs/"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Without flags of the user's, and with a compiler that does not optimise: that is quicker."""
    compiler = tmp_path_factory.mktemp("compiler") / "cc"
    compiler.write_text('#!/bin/sh\nexec cc "$@" -O0\n')
    compiler.chmod(0o755)
    plain = {k: v for k, v in os.environ.items() if k not in ("CFLAGS", "CXXFLAGS", "LDFLAGS")}
    return {**plain, "CC": str(compiler)}


@pytest.fixture(scope="module")
def wheel(
    source: Path, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    done = pip("wheel", "--no-deps", "--wheel-dir", folder, source, env=environment)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    return path


def test_a_wheel_converts_in_an_empty_environment_without_a_compiler(
    wheel: Path, tmp_path: Path, run: Run
) -> None:
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    binaries = tmp_path / "venv" / "bin"
    environment = {"PATH": str(binaries), "HOME": str(tmp_path)}
    assert not any(shutil.which(name, path=str(binaries)) for name in ("cc", "gcc", "clang"))
    settings = {k: v for k, v in os.environ.items() if k.startswith("PIP_")}
    done = pip(
        "--python", binaries / "python", "install", "--quiet", wheel,
        env={**environment, **settings, "HOME": os.environ.get("HOME", "/")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    outputs = [tmp_path / name for name in ("profile", "fdata")]
    done = run(
        binaries / "lbr2pgo", "convert", RECORDING, "--binary", ELF,
        "--llvm", outputs[0], "--fdata", outputs[1], env=environment, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0
    assert all(output.stat().st_size for output in outputs)


README = re.compile(r"<!-- tests/test_packaging.py runs these -->\n```sh\n(.*?)```", re.DOTALL)


@pytest.mark.usefixtures("wheel")  # what was compiled for it is not compiled once more
def test_the_readme_s_three_commands_lead_to_an_optimised_program(
    source: Path, environment: dict[str, str], tmp_path: Path, tool: Tool, run: Run
) -> None:
    """In a new environment, which sees the packages of this one, to install only what is new.

    That has what the package is built with, too. pip would fetch it anew, and Cython translates
    whatever is older than its own files.
    """
    for name in ("cmake", "clang++-22", "llvm-bolt-22", "qemu-x86_64"):
        tool(name)
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    binaries = tmp_path / "venv" / "bin"
    (binaries / "pip").write_text('#!/bin/sh\nexec python -m pip "$@"\n')
    (binaries / "pip").chmod(0o755)
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    found = README.search((source / "README.md").read_text())
    assert found is not None
    first, *others = found[1].splitlines()
    assert first.startswith("pip install ")
    assert len(others) == 2
    path = f"{binaries}:{environment['PATH']}"
    not_alone = {"PIP_NO_BUILD_ISOLATION": "0"}  # as pip reads it, no isolation
    run("sh", "-c", first, cwd=source, env={**environment, **not_alone, "PATH": path})
    users = {**environment, "CC": os.environ.get("CC", "cc")}
    for command in others:
        run("sh", "-c", command, cwd=source, env={**users, "PATH": path})
    built = source / "build" / "mini"
    said = [
        run(built / name, source / "examples/interp-cmake/scripts/train.mini", "2").stdout
        for name in ("mini-training", "mini", "mini.bolt")
    ]
    assert said[0] == said[1] == said[2] != ""
    sections = run("readelf", "-S", "-W", built / "mini.bolt").stdout
    assert ".note.bolt_info" in sections


def test_a_wheel_holds_compiled_loops_with_their_types(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    compiled = {name.split(".")[0] for name in names if name.endswith(".so")}
    typed = {name.split(".")[0] for name in names if name.endswith(".pyi")}
    assert compiled == _named("*.pyx") | {"lbr2pgo/native/_memoryviews"}
    assert typed == _named("*.pyi")


def test_one_wheel_serves_all_later_pythons(wheel: Path) -> None:
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("free-threaded Pythons have no limited API")
    names = zipfile.ZipFile(wheel).namelist()
    assert wheel.name.split("-")[2:4] == ["cp311", "abi3"]
    assert all(name.endswith(".abi3.so") for name in names if name.endswith(".so"))


def test_no_loop_wants_the_global_lock(wheel: Path, source: Path) -> None:
    """Cython's C says that it is used if it is told so, once, and by default if the source is."""
    made = [path.read_text() for path in (source / "build" / "cython").rglob("*.c")]
    assert [text.count("COMPATIBLE Py_MOD_GIL_USED") for text in made] == [1] * len(made) != []


def _named(pattern: str) -> set[str]:
    """Files of the package, as paths without an ending."""
    found = (ROOT / "lbr2pgo").rglob(pattern)
    return {path.relative_to(ROOT).with_suffix("").as_posix() for path in found}


def test_no_loop_swallows_an_index_out_of_bounds(wheel: Path, source: Path) -> None:
    """Cython prints what a `noexcept` function raises, and goes on: none checks an index."""
    made = list((source / "build" / "cython").rglob("*.c"))
    assert {path.stem for path in made} >= {Path(name).stem for name in _named("*.pyx")}
    assert any("__Pyx_RaiseBufferIndexErrorNogil" in path.read_text() for path in made)
    assert [path.stem for path in made if '__Pyx_WriteUnraisable("' in path.read_text()] == []


def test_installing_without_a_compiler_ends_with_one_line(source: Path, tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k not in ("CC", "CFLAGS")}
    only_git = tmp_path / "bin"
    only_git.mkdir()
    done = pip(
        "wheel", "--no-deps", "--wheel-dir", tmp_path / "wheels", source,
        env={**environment, "PATH": str(only_git)},
    )  # fmt: skip
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if "lbr2pgo has loops to compile" in line]
    assert len(said) == 1
    assert "[1 lines of output]" in done.stderr


def test_without_headers_setup_says_the_same_line(tmp_path: Path) -> None:
    """A Python whose headers would stand in an empty directory."""
    code = (
        "import sysconfig, sys; sysconfig.get_path = lambda name: sys.argv[1]\n"
        "import setup; setup.check_compiler()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "install a C compiler and Python's headers" in done.stderr


YES, NO = "exit 0", "exit 1"
FOUND = {
    "no compiler": ({"python3": YES}, False),
    "no headers": ({"python3": NO, "cc": YES}, False),
    "both": ({"python3": YES, "cc": YES}, True),
}
"""What the programs on PATH answer, python3 whether it has its headers."""


@pytest.mark.parametrize(("answers", "is_ready"), FOUND.values(), ids=FOUND)
def test_make_asks_for_what_lacks_in_one_line(
    tmp_path: Path, tool: Tool, answers: dict[str, str], is_ready: bool
) -> None:
    """Where it can't install it: for a user who is not root, and without apt-get."""
    for name, answer in {"id": "echo 1000", **answers}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{answer}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        [tool("make"), "-s", "compiler"], cwd=ROOT, env={"PATH": str(tmp_path)},
        capture_output=True, text=True,
    )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if not line.startswith("make: ***")]
    wanted = "a C compiler and Python's headers are needed; on Debian: apt-get install gcc"
    assert (done.returncode == 0) is is_ready
    assert [line.startswith(wanted) for line in said] == [True] * (not is_ready)


def test_wheels_are_built_for_every_supported_system(run: Run) -> None:
    """As docs/recipes/wheels.yml lets them be built."""
    found = run(
        sys.executable, "-m", "cibuildwheel", "--print-build-identifiers", "--platform", "linux",
        "--archs", "x86_64,aarch64", ROOT,
    ).stdout.split()  # fmt: skip
    expected = {
        f"cp3{minor}-{libc}_{machine}"
        for minor in (11, 12, 13, 14)
        for libc in ("manylinux", "musllinux")
        for machine in ("x86_64", "aarch64")
    }
    assert set(found) == expected
