"""A program with data that it needs and data that it doesn't, recorded with each access."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from builders.fixtures import Tool

from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software

OBJECTS = 64
PROGRAM = (
    "#include <stdlib.h>\n"
    + "".join(
        f"int zeroed{i}[256], set{i}[256] = {{{i + 1}}}; const int fixed{i}[256] = {{{i + 1}}};\n"
        for i in range(OBJECTS)
    )
    + "int *zeroed[] = {" + ", ".join(f"zeroed{i}" for i in range(OBJECTS)) + "};\n"
    + "int *set[] = {" + ", ".join(f"set{i}" for i in range(OBJECTS)) + "};\n"
    + "const int *fixed[] = {" + ", ".join(f"fixed{i}" for i in range(OBJECTS)) + "};\n"
    + """
int main(int argc, char **argv) {
    long sum = 0;
    for (int round = 0; round < 50; round++)
        for (int i = 0; i < 64; i += 16)  /* 0, 16, 32, 48 */
            for (int k = 0; k < 256; k += 16) {
                zeroed[i][k]++;
                sum += set[i][k] + fixed[i][k] * (i == 16 ? 0 : 1) + fixed[16][k];
            }
    return sum == 1;
}
"""
)  # fmt: skip
NEEDED = tuple(f"{kind}{i}" for kind in ("zeroed", "set", "fixed") for i in (0, 16, 32, 48))


def built(directory: Path, tool: Tool, *flags: str) -> Path:
    (directory / "program.c").write_text(PROGRAM)
    command = [tool("clang-22"), "-O1", "-fdata-sections", "-fuse-ld=lld", *flags]
    subprocess.run([*command, "program.c", "-o", "program"], cwd=directory, check=True)
    return directory / "program"


def recorded(program: Path, output: Path) -> Path:
    record_software(RecordOptions(output=output, command=(str(program),), period=32, data=True))
    return output


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory, tool: Tool) -> Path:
    tool("qemu-x86_64")
    return built(tmp_path_factory.mktemp("data"), tool)


@pytest.fixture(scope="session")
def recording(program: Path) -> Path:
    return recorded(program, program.parent / "perf.data")
