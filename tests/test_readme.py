"""The README's way from a fresh checkout to an optimised program, as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from builders.checkout import check_out

COMMANDS = re.compile(r"<!-- tests/test_readme.py runs these -->\n```sh\n(.*?)```", re.DOTALL)


@pytest.fixture
def environment(tmp_path: Path, run) -> dict[str, str]:
    """A new virtual environment; it sees the packages of this one, to install only what is new."""
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    plain = {k: v for k, v in os.environ.items() if k not in ("CFLAGS", "CXXFLAGS", "LDFLAGS")}
    return {**plain, "PATH": f"{tmp_path / 'venv' / 'bin'}:{os.environ['PATH']}"}


@pytest.mark.slow
def test_three_commands_lead_to_an_optimised_program(
    tmp_path: Path, environment: dict[str, str], quick_compiler: Path, tool, run
) -> None:
    for name in ("cmake", "clang++-22", "llvm-bolt-22", "qemu-x86_64"):
        tool(name)
    checkout = check_out(tmp_path / "checkout")
    found = COMMANDS.search((checkout / "README.md").read_text())
    assert found is not None
    commands = found[1].splitlines()
    assert len(commands) == 3
    for command in commands:
        installs = command.startswith("pip")
        variables = {**environment, "CC": str(quick_compiler)} if installs else environment
        done = subprocess.run(
            ["sh", "-c", command], cwd=checkout, env=variables, capture_output=True, text=True
        )
        if done.returncode and "No matching distribution" in done.stderr:
            pytest.skip("pip reaches no package registry to build with")
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    built = checkout / "build" / "mini"
    said = [
        run(built / name, checkout / "examples/interp-cmake/scripts/train.mini", "2").stdout
        for name in ("mini-training", "mini", "mini.bolt")
    ]
    assert said[0] == said[1] == said[2] != ""
    sections = run("readelf", "-S", "-W", built / "mini.bolt").stdout
    assert ".note.bolt_info" in sections
