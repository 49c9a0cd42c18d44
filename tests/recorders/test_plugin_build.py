from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import networkx
import pytest
from builders.fixtures import Tool

from lbr2pgo.recorders import plugin_build
from lbr2pgo.recorders.plugin_build import SOURCES, built_plugin, cache_directory, plugin_path
from lbr2pgo.support.errors import MissingToolError

Environment = dict[str, str]


@pytest.fixture
def environment(tmp_path: Path, tool: Tool) -> Environment:
    tool("cc")
    return {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(tmp_path / "cache")}


def logging_compiler(directory: Path) -> tuple[Path, Path]:
    """A compiler that notes each call, and the file it notes them in."""
    log = directory / "log"
    script = directory / "my-cc"
    script.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec cc "$@"\n')
    script.chmod(0o755)
    return script, log


def test_compiles_once_and_then_takes_it_from_the_cache(
    environment: Environment, tmp_path: Path
) -> None:
    script, log = logging_compiler(tmp_path)
    environment["CC"] = str(script)
    first = built_plugin(environment)
    assert first.parent == tmp_path / "cache" / "lbr2pgo"
    assert built_plugin(environment) == first
    compilations = [line for line in log.read_text().splitlines() if "-shared" in line]
    assert len(compilations) == 1
    symbols = subprocess.run(["nm", "-D", first], capture_output=True, text=True).stdout
    exported = {line.split()[-1] for line in symbols.splitlines() if " U " not in line}
    assert {"qemu_plugin_install", "qemu_plugin_version"} <= exported
    assert not [path for path in first.parent.iterdir() if path != first]


def test_a_compiler_may_have_options_or_be_called_by_another_program(
    environment: Environment, tmp_path: Path
) -> None:
    script, log = logging_compiler(tmp_path)
    environment["CC"] = f"env {script} -DOURS"
    assert built_plugin(environment).exists()
    assert all("-DOURS" in line for line in log.read_text().splitlines())


def test_another_compiler_or_other_sources_make_another_plugin(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = plugin_path(environment)
    script, _ = logging_compiler(tmp_path)
    assert plugin_path(environment | {"CC": str(script)}) != usual
    sources = tmp_path / "plugin"
    shutil.copytree(SOURCES, sources)
    monkeypatch.setattr(plugin_build, "SOURCES", sources)
    assert plugin_path(environment) == usual
    with (sources / "cpu.h").open("a") as file:
        file.write("// changed\n")
    assert plugin_path(environment) != usual


def test_planning_compiles_nothing(environment: Environment) -> None:
    assert not plugin_path(environment).exists()


@pytest.mark.parametrize("named", [None, "cc-of-mine"])
def test_no_compiler(environment: Environment, tmp_path: Path, named: str | None) -> None:
    environment["PATH"] = str(tmp_path)
    if named:
        environment["CC"] = named
    with pytest.raises(MissingToolError) as caught:
        built_plugin(environment)
    assert (named or "cc") in caught.value.what
    assert caught.value.cure is not None
    assert "apt-get install gcc" in caught.value.cure


def test_a_compiler_that_fails(environment: Environment, tmp_path: Path) -> None:
    script = tmp_path / "bad-cc"
    script.write_text("#!/bin/sh\necho 'lbr.c:9: fatal error: elf.h: No such file' >&2\nexit 1\n")
    script.chmod(0o755)
    with pytest.raises(MissingToolError, match=r"fatal error: elf\.h") as caught:
        built_plugin(environment | {"CC": str(script)})
    assert "headers" in str(caught.value)
    assert not list((tmp_path / "cache" / "lbr2pgo").iterdir())


def test_without_a_home_the_temporary_directory_will_do(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_build.tempfile, "gettempdir", lambda: str(tmp_path))
    assert cache_directory({}) == tmp_path / f"lbr2pgo-{os.getuid()}"
    assert (tmp_path / f"lbr2pgo-{os.getuid()}").stat().st_mode & 0o777 == 0o700
    assert cache_directory({"HOME": "/proc/nowhere"}).parent == tmp_path
    assert cache_directory({"HOME": str(tmp_path)}) == tmp_path / ".cache" / "lbr2pgo"


def test_a_directory_that_others_can_write_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_build.tempfile, "gettempdir", lambda: str(tmp_path))
    planted = tmp_path / f"lbr2pgo-{os.getuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    assert cache_directory({}) != planted


def test_a_link_that_someone_planted_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_build.tempfile, "gettempdir", lambda: str(tmp_path))
    (tmp_path / f"lbr2pgo-{os.getuid()}").symlink_to(tmp_path)
    assert not cache_directory({}).is_symlink()


@pytest.mark.parametrize("compiler", ["gcc", "clang-22"])
def test_compiles_without_a_warning(compiler: str, tool: Tool, tmp_path: Path) -> None:
    command = [
        tool(compiler), "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
        "-fvisibility=hidden", *SOURCES.glob("*.c"), "-o", tmp_path / "lbr.so", "-ldl",
        "-lpthread",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_each_header_needs_no_other_before_it(tool: Tool) -> None:
    for path in SOURCES.glob("*.h"):
        command = [tool("cc"), "-std=gnu11", "-Wall", "-Werror", "-fsyntax-only", path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_modules_of_the_plugin_make_no_circle() -> None:
    graph = networkx.DiGraph(
        (path.stem, name)
        for path in SOURCES.iterdir()
        for name in re.findall(r'^#include "(\w+)\.h"', path.read_text(), re.MULTILINE)
        if name != path.stem
    )
    assert {"lbr", "x86_64", "aarch64"} <= set(graph)
    assert list(networkx.simple_cycles(graph)) == []


def test_the_sources_are_packaged() -> None:
    names = {path.name for path in SOURCES.iterdir()}
    assert "lbr.c" in names
    assert {path.suffix for path in SOURCES.iterdir()} == {".c", ".h"}
