"""Virtual tables by source line, as llvm-profgen counts them of the same accesses."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from builders.fixtures import Tool

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.llvm.format import LlvmOutput
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software
from lbr2pgo.support.errors import OutputError

PROGRAM = """
struct Base { virtual int f(int) = 0; virtual ~Base() {} };
struct One : Base { int f(int x) override { return x + 1; } };
struct Two : Base { int f(int x) override { return x * 3; } };
struct Three : Two { int f(int x) override { return x ^ 5; } };
__attribute__((noinline)) int call(Base *base, int x) {
  return base->f(x);
}
static inline int both(Base *a, Base *b, int x) { return a->f(x) + b->f(x); }
int main(int argc, char **argv) {
  Base *all[4] = {new One, new Two, new One, new Three};
  int sum = 0;
  for (int i = 0; i < 800; i++) {
    sum += call(all[i & 3], i);
    sum += both(all[i & 1], all[3], i);
  }
  return sum == 7;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, tool: Tool) -> Path:
    directory = tmp_path_factory.mktemp("vtables")
    tool("qemu-x86_64")
    (directory / "program.cc").write_text(PROGRAM)
    command = [
        tool("clang++-22"), "-O1", "-g", "-fdebug-info-for-profiling", "-no-pie", "program.cc",
        "-o", "program",
    ]  # fmt: skip
    subprocess.run(command, cwd=directory, check=True)
    return directory / "program"


def record(program: Path, output: Path, *, data: bool) -> Path:
    record_software(
        RecordOptions(
            output=output, command=(str(program),), period=32, emulate=True, data=data,
            call_graph=False,
        )
    )  # fmt: skip
    return output


@pytest.fixture(scope="module")
def recording(program: Path) -> Path:
    return record(program, program.parent / "perf.data", data=True)


def vtables(program: Path, recording: Path, output: LlvmOutput) -> list[str]:
    convert(ConvertOptions((recording,), program, outputs=(output,)))
    return [line for line in output.path.read_text().splitlines() if "vtables" in line]


def test_they_are_those_of_llvm_profgen(
    program: Path, recording: Path, tool: Tool, tmp_path: Path
) -> None:
    """It takes what perf prints of our recording; branches it wants alone."""
    perf = tool("perf")
    branches, trace = tmp_path / "branches.txt", tmp_path / "accesses.txt"
    alone = record(program, tmp_path / "branches.data", data=False)
    for path, words in (
        (branches, ("-i", alone, "-F", "ip,brstack", "--show-mmap-events")),
        (trace, ("-i", recording, "-D")),
    ):
        with path.open("wb") as sink:
            subprocess.run([perf, "script", *words], stdout=sink, check=True)
    command = [
        tool("llvm-profgen-22"), "--format=text", f"--perfscript={branches}", f"--binary={program}",
        f"--data-access-perftrace={trace}", f"--output={tmp_path / 'theirs'}",
        "--use-dwarf-correlation", "--ignore-stack-samples",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    theirs = (tmp_path / "theirs").read_text().splitlines()
    ours = vtables(program, recording, LlvmOutput(tmp_path / "ours", vtables=True))
    assert ours == [line for line in theirs if "vtables" in line]
    assert ours == [
        "  0: vtables _ZTV3One:400 _ZTV3Two:400 ",
        "  0.1: vtables _ZTV5Three:800 ",
        " 1: vtables _ZTV3One:400 _ZTV3Two:200 _ZTV5Three:200 ",
    ]


@pytest.mark.parametrize("options", [{}, {"stable": True}])
def test_the_rest_of_the_profile_is_as_without(
    options: dict[str, bool], program: Path, recording: Path, tmp_path: Path
) -> None:
    with_them = LlvmOutput(tmp_path / "with", vtables=True, **options)
    assert len(vtables(program, recording, with_them)) == 3
    assert vtables(program, recording, without := LlvmOutput(tmp_path / "without", **options)) == []
    lines = with_them.path.read_text().splitlines()
    assert [
        line for line in lines if "vtables" not in line
    ] == without.path.read_text().splitlines()


def test_llvm_reads_both_forms(program: Path, recording: Path, tool: Tool, tmp_path: Path) -> None:
    shown = []
    for form in ("text", "extbinary"):
        output = LlvmOutput(tmp_path / form, form=form, vtables=True)  # type: ignore[arg-type]
        convert(ConvertOptions((recording,), program, outputs=(output,)))
        command = [tool("llvm-profdata-22"), "show", "--sample", output.path]
        shown.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert shown[0] == shown[1]
    assert "_ZTV5Three:800" in shown[0]


def test_recordings_that_can_t_tell_say_so(program: Path, tmp_path: Path) -> None:
    plain = record(program, tmp_path / "perf.data", data=False)
    with pytest.raises(OutputError, match="does not say which virtual tables"):
        vtables(program, plain, LlvmOutput(tmp_path / "out", vtables=True))
    assert not (tmp_path / "out").exists()


def test_contexts_are_refused(program: Path, tmp_path: Path) -> None:
    chained = tmp_path / "perf.data"
    command = (str(program),)
    record_software(RecordOptions(output=chained, command=command, period=32, data=True))
    with pytest.raises(OutputError, match="without contexts"):
        vtables(program, chained, LlvmOutput(tmp_path / "out", vtables=True, contexts="nested"))
