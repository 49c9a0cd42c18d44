"""Work grows with functions, images and mappings as it does with a line: counted, not timed.

Four times as many take four times what a quarter of the step took, in instructions of the whole
process. Sorting makes that a little more (4.2 for anonymous memory). What takes some 50
instructions for each pair of functions makes it 4.4; Python's loop that compares all pairs, 12.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.elf import Function, elf
from builders.fixtures import Run, Tool, lbr2pgo
from builders.instructions import instructions_of
from builders.many_mappings import FAST, MANY_MAPPINGS, among_samples
from builders.perf_data import Event, Sample, file_form, mmap2
from builders.recordings import STATIC

MOST = 4.4
MOST_OF_IMAGES = 4.1
"""An image takes 38 million instructions whatever there is beside it, and makes it 4.02; what takes
35,000 for each pair of images, as going through what all processes mapped, makes it 4.2."""
FUNCTION = """
__attribute__((noinline)) long f{i:04}(long n) {{
  long s = n;
  for (long k = 0; k < {rounds}; k++)
    if ((s ^ k) & {mask}) sink += s * {i}; else s = s / 3 + k;
  return s;
}}
"""
MAIN = """
static long (*volatile const all[])(long) = {{{names}}};
int main(void) {{
  long s = 7;
  for (int i = 0; i < {count}; i++) s += all[i](s & 7);
  return 0;
}}
"""
LOOP, LOOP_AT = bytes.fromhex("ffc8 75fc c3"), 0x1000
"""`loop: dec eax; jne loop; ret`, and its address."""
EVENT = Event()


@pytest.fixture
def valgrind(tool: Tool) -> None:
    """Or a skip."""
    tool("valgrind")
    tool("gcc")


def growth(commands: list[list[object]], folder: Path) -> float:
    """By what the work grew from the second to the third, against from the first to the second."""
    first, second, third = instructions_of(commands, folder)
    assert second > 1.02 * first, "so little is not seen"
    return (third - second) / (second - first)


def c_program(count: int) -> str:
    """A program that runs every one of so many functions."""
    functions = (FUNCTION.format(i=i, rounds=3 + i % 4, mask=1 + i % 3) for i in range(count))
    names = ", ".join(f"f{i:04}" for i in range(count))
    return "".join(
        ("static volatile long sink;", *functions, MAIN.format(names=names, count=count))
    )


@pytest.mark.slow
@pytest.mark.usefixtures("valgrind")
def test_functions(tool: Tool, run: Run, tmp_path: Path) -> None:
    commands: list[list[object]] = []
    for count in (50, 200, 800):
        program, recording = tmp_path / f"{count}", tmp_path / f"{count}.data"
        source, out = program.with_suffix(".c"), tmp_path / f"{count}.prof"
        source.write_text(c_program(count))
        run(tool("clang-22"), "-O2", "-g", source, "-o", program)
        run(*lbr2pgo("record", "--emulate", "-c", 23, "-o", recording, "--", program))
        made = "--llvm", out, "--fdata", out.with_suffix(".fdata")
        commands.append(["convert", recording, "--binary", program, *made])
    assert growth(commands, tmp_path) < MOST
    written = out.read_text()
    assert all(f"\nf{i:04}:" in f"\n{written}" for i in range(count))


@pytest.mark.slow
@pytest.mark.usefixtures("valgrind")
def test_images(tmp_path: Path) -> None:
    """So many programs, in a recording of as many samples in all."""
    commands: list[list[object]] = []
    for count in (4, 16, 64):
        folder = tmp_path / f"{count}"
        folder.mkdir()
        paths = [folder / f"program{number:02}" for number in range(count)]
        for path in paths:
            path.write_bytes(elf(LOOP, LOOP_AT, [Function("loop", LOOP_AT, len(LOOP))]))
        recording, out = folder / "perf.data", folder / "{name}.fdata"
        recording.write_bytes(of_programs(paths))
        commands.append(["convert", recording, "--all-images", "--force", "--fdata", out])
    assert growth(commands, tmp_path) < MOST_OF_IMAGES
    for path in paths:
        assert path.with_name(f"{path.name}.fdata").read_text().startswith("1 loop 2 1 loop 0 ")


def of_programs(paths: list[Path]) -> bytes:
    """768 samples of programs that run in one process each."""
    pids = range(10, 10 + len(paths))
    mapped = (
        mmap2(pid, LOOP_AT, 0x1000, str(path), EVENT.trailer(pid, pid, 1))
        for pid, path in zip(pids, paths, strict=True)
    )
    stack = ((LOOP_AT + 2, LOOP_AT, 2),) * 32
    samples = (
        Sample(stack, pid=pids[i % len(pids)], time=100 + i).encode(EVENT) for i in range(768)
    )
    return file_form([EVENT], b"".join((*mapped, *samples)))


@pytest.mark.slow
@pytest.mark.usefixtures("valgrind")
@pytest.mark.parametrize(
    "kind",
    [pytest.param(name, marks=() if name in FAST else pytest.mark.long) for name in MANY_MAPPINGS],
)
def test_mappings(kind: str, tmp_path: Path) -> None:
    commands: list[list[object]] = []
    for count in (500, 2000, 8000):
        recording, out = tmp_path / f"{count}", tmp_path / f"{count}.fdata"
        recording.write_bytes(among_samples(MANY_MAPPINGS[kind](count)))
        commands.append(["convert", recording, "--binary", STATIC, "--fdata", out])
    assert growth(commands, tmp_path) < MOST
