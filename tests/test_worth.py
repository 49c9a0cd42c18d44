"""What profiles of probes and of contexts are worth, beside those that llvm-profgen makes."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.fixtures import Run, Tool
from builders.hybrid import text_of
from builders.recordings import TESTBINS

from lbr2pgo.model.exact_counts import Totals
from lbr2pgo.pgo.measure import Candidate, count
from lbr2pgo.pgo.training import Training, make_profiles, record_all
from lbr2pgo.profiles.llvm.format import LlvmOutput
from lbr2pgo.sources.perf_data.reader import PerfData

pytestmark = pytest.mark.slow


FLAGS = {
    "probes": ("-fpseudo-probe-for-profiling",),
    "contexts": ("-fdebug-info-for-profiling", "-fno-optimize-sibling-calls"),
}
ALLOWED = {"probes": 1.0, "contexts": 1.03}
"""How many times theirs: samples that llvm-profgen drops are in our contexts, and each changes a
few decisions of the compiler. Which those are depends on where the period falls: over 8 periods and
two lengths of the path, ours took 0.991 to 1.017 of the taken branches that theirs took on
shapes.cpp, 1.0003 in the mean, with a standard deviation of 0.008."""
SOURCES = ("interp.c", "shapes.cpp")


def compiled(folder: Path, source: str, run: Run, tool: Tool, *flags: str) -> Path:
    """A program in a folder of its own: its path is part of its work, and is as long as others."""
    folder.mkdir()
    common = ("-O2", "-g1", "-no-pie", "-fuse-ld=lld", "-Wl,--build-id")
    path = TESTBINS / "src" / source
    run(tool("clang++-22" if path.suffix == ".cpp" else "clang-22"), *common, *flags, path,
        "-o", folder / "program")  # fmt: skip
    return folder / "program"


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", FLAGS)
def test_our_profile_is_worth_no_less_than_llvm_profgens(
    kind: str, source: str, tmp_path: Path, run: Run, tool: Tool
) -> None:
    flags = FLAGS[kind]
    plain = compiled(tmp_path / "0", source, run, tool, *flags)
    recording, text = tmp_path / "perf.data", tmp_path / "script.txt"
    training = Training((f"{plain} 5",), 211, emulate=True, call_graph=kind == "contexts")
    record_all(training, recording, print)
    if kind == "contexts":
        text.write_text(text_of(PerfData(recording).batches()))
    else:
        script = run(tool("perf"), "script", "-f", "-i", recording, "-F", "ip,brstack")
        text.write_text(script.stdout)
    ours, theirs = tmp_path / "ours.prof", tmp_path / "theirs.prof"
    make_profiles([recording], plain, print, [LlvmOutput(ours)])
    run(tool("llvm-profgen-22"), f"--perfscript={text}", f"--binary={plain}", f"--output={theirs}")
    first, second = (
        totals(compiled(tmp_path / name, source, run, tool, *flags, f"-fprofile-sample-use={path}"))
        for name, path in (("1", ours), ("2", theirs))
    )
    assert first.instructions <= ALLOWED[kind] * second.instructions
    assert first.taken <= ALLOWED[kind] * second.taken
    assert first.taken < totals(plain).taken


def totals(program: Path) -> Totals:
    return count(Candidate(str(program), (str(program), "3"))).totals
