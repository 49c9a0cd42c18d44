from __future__ import annotations

import contextlib
import random
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders.bolt import (
    C_SOURCES,
    SOURCES,
    RandomTraces,
    Trace,
    build,
    counts_of,
    lines_of,
    lines_of_file,
    perf2bolt,
)
from builders.compat import AS_PERF2BOLT
from builders.fixtures import Corpus, Run, Tool
from builders.recordings import PIE, RECORDED, RECORDING, TESTBINS

from lbr2pgo.conversion import Conversion, ConvertOptions, convert
from lbr2pgo.counting.count import count
from lbr2pgo.model.branch_counts import BRANCH, END, FROM, RETURN, TO, BranchCounts, aggregate
from lbr2pgo.model.compat import OURS
from lbr2pgo.model.incomplete import IncompleteError
from lbr2pgo.model.waterfall import check
from lbr2pgo.profiles.bolt.fdata import fdata_text as fdata_file
from lbr2pgo.profiles.bolt.fdata.derive_fdata import fdata_from_counts
from lbr2pgo.profiles.bolt.fdata.format import FORMAT
from lbr2pgo.profiles.registry import output, steps
from lbr2pgo.program.program import Program
from lbr2pgo.sources import open_source
from lbr2pgo.support.errors import InputError

LLD = "-fuse-ld=lld"
BUILDS = {
    "clang-pie": (C_SOURCES, "clang-22", "-O2", "-fPIE", "-pie", LLD),
    "clang-pie-relocations": (C_SOURCES, "clang-22", "-O2", "-fPIE", "-pie", LLD, "-Wl,-q"),
    "clang-fixed": (C_SOURCES, "clang-22", "-O2", "-fno-pie", "-no-pie", LLD),
    "clang-fixed-relocations": (
        C_SOURCES, "clang-22", "-O2", "-fno-pie", "-no-pie", LLD, "-Wl,-q",
    ),
    "clang-probed": (
        C_SOURCES, "clang-22", "-O2", "-g1", "-fpseudo-probe-for-profiling", LLD, "-Wl,-q",
    ),
    "clang-small": (C_SOURCES, "clang-22", "-Oz", LLD),
    "clang-lto": (C_SOURCES, "clang-22", "-O2", "-flto", LLD),
    "clang-library": (C_SOURCES, "clang-22", "-O2", "-shared", "-fPIC", LLD),
    "gcc-pie": (C_SOURCES, "gcc", "-O2", "-fPIE", "-pie"),
    "gcc-pie-relocations": (C_SOURCES, "gcc", "-O2", "-fPIE", "-pie", "-Wl,-q"),
    "gcc-fixed": (C_SOURCES, "gcc", "-O1", "-fno-pie", "-no-pie"),
    "gcc-cet": (C_SOURCES, "gcc", "-O2", "-fcf-protection=full"),
    "gcc-library": (C_SOURCES, "gcc", "-O2", "-shared", "-fPIC"),
    "gcc-static": (C_SOURCES, "gcc", "-O2", "-static"),
    "clang-exceptions": (("throws.cpp",), "clang++-22", "-O2", LLD),
    "clang-folded": (("throws.cpp",), "clang++-22", "-O2", LLD, "-Wl,--icf=all"),
    "clang-unoptimised": (("throws.cpp",), "clang++-22", "-O0", LLD),
    "gcc-exceptions": (("throws.cpp",), "g++", "-O2"),
    "gcc-exceptions-relocations": (("throws.cpp",), "g++", "-O2", "-Wl,-q"),
    "aarch64-gcc": (C_SOURCES, "aarch64-linux-gnu-gcc", "-O2"),
    "aarch64-protected": (
        C_SOURCES, "aarch64-linux-gnu-gcc", "-O2", "-mbranch-protection=standard", "-Wl,-q",
    ),
    "aarch64-static": (C_SOURCES, "aarch64-linux-gnu-gcc", "-O2", "-static"),
    "riscv64-gcc": (C_SOURCES, "riscv64-linux-gnu-gcc", "-O2"),
    "riscv64-far": (C_SOURCES, "riscv64-linux-gnu-gcc", "-O2", "-mno-relax"),
    "gcc-static-relocations": (C_SOURCES, "gcc", "-O2", "-static", "-Wl,-q"),
    "assembly-relocations": (("odd.s",), "clang-22", "-nostdlib", "-static", LLD, "-Wl,-q"),
    "assembly": (("odd.s",), "clang-22", "-nostdlib", "-static", LLD),
}  # fmt: skip


JUMPS_OVER_JR = re.compile(r"1 (de)?register_tm_clones/1 \w+ 1 (de)?register_tm_clones/1 \w+ 0 ")
"""GCC's start files jump over `jr a5` there; perf2bolt counts the way to it on x86-64 and AArch64,
not on RISC-V."""


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, tool: Tool) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            sources, compiler, *flags = BUILDS[name]
            if LLD in flags:
                tool("ld.lld-22")
            target = tmp_path_factory.mktemp("bolt") / name
            made[name] = build(target, sources, tool(compiler), *flags)
        return made[name]

    return get


def address(program: Program, name: str, offset: int = 0) -> int:
    row = program.symbols.by_name(name)
    assert row is not None
    return int(program.symbols.start[row]) + offset


class TestAgainstPerf2bolt:
    @pytest.mark.parametrize("name", BUILDS)
    def test_random_traces(
        self, name: str, built: Callable[[str], Path], tool: Tool, tmp_path: Path
    ) -> None:
        program = Program.open(built(name))
        counts = counts_of(RandomTraces(program, seed=1).draw(1500))
        expected = perf2bolt(tool("perf2bolt-22"), built(name), counts, tmp_path)
        found = lines_of(fdata_from_counts(counts, program, AS_PERF2BOLT)[0])
        if program.image.machine == "riscv64":
            found -= {line for line in found - expected if JUMPS_OVER_JR.match(line)}
        assert found == expected

    def test_stripped_binaries_keep_the_functions_that_the_unwinder_knows(
        self, built: Callable[[str], Path], tool: Tool, tmp_path: Path
    ) -> None:
        binary = tmp_path / "stripped"
        subprocess.run([tool("strip"), "-o", binary, built("clang-exceptions")], check=True)
        program = Program.open(binary)
        counts = counts_of(RandomTraces(program, seed=2).draw(500))
        expected = perf2bolt(tool("perf2bolt-22"), binary, counts, tmp_path, "--allow-stripped")
        found, _ = fdata_from_counts(counts, program, AS_PERF2BOLT)
        assert lines_of(found) == expected
        assert any("__BOLT_FDE_FUNCat" in line for line in expected)

    @pytest.mark.parametrize(
        "name",
        ["func-split", "inline-noprobe2", "noinline-cs-pseudoprobe", "unique-linkage-name-dwarf"],
    )
    def test_binaries_of_the_corpus(
        self, name: str, corpus: Corpus, tool: Tool, tmp_path: Path
    ) -> None:
        binary = corpus(f"llvm-profgen/{name}.perfbin")
        program = Program.open(binary)
        counts = counts_of(RandomTraces(program, seed=3).draw(500))
        expected = perf2bolt(tool("perf2bolt-22"), binary, counts, tmp_path)
        assert lines_of(fdata_from_counts(counts, program, AS_PERF2BOLT)[0]) == expected


class TestSqlite:
    BASE = 0x4000000000
    CODE = range(0x4000030000, 0x400012C000)

    def test_counting_and_perf2bolts_lines(self, corpus: Corpus) -> None:
        program = Program.open(corpus("sqlite/sq.zst"))
        counted = count(open_source(corpus("sqlite/sq.perf.data.zst")), program.image.layout)
        expected = lines_of_file(corpus("sqlite/sq.perf2bolt-22.fdata.zst"))
        for options in (OURS, AS_PERF2BOLT):
            assert lines_of(fdata_from_counts(counted.counts, program, options)[0]) == expected

    def test_the_file_is_perf2bolts_byte_for_byte(self, corpus: Corpus, tmp_path: Path) -> None:
        program = Program.open(corpus("sqlite/sq.zst"))
        counted = count(open_source(corpus("sqlite/sq.perf.data.zst")), program.image.layout)
        fdata_file.write(fdata_from_counts(counted.counts, program)[0], tmp_path / "sq.fdata")
        expected = corpus("sqlite/sq.perf2bolt-22.fdata.zst").read_bytes()
        assert (tmp_path / "sq.fdata").read_bytes() == expected

    @pytest.mark.slow
    def test_counts_are_those_of_perf_script(self, corpus: Corpus, tool: Tool, run: Run) -> None:
        program = Program.open(corpus("sqlite/sq.zst"))
        recording = corpus("sqlite/sq.perf.data.zst")
        counted = count(open_source(recording), program.image.layout)
        text = run(tool("perf"), "script", "-i", recording, "-F", "pid,brstack").stdout
        expected = self._count(text)
        assert np.array_equal(counted.counts.from_, expected.from_)
        assert np.array_equal(counted.counts.to, expected.to)
        assert np.array_equal(counted.counts.end, expected.end)
        assert np.array_equal(counted.counts.count, expected.count)
        assert np.array_equal(counted.counts.mispredicted, expected.mispredicted)

    def _count(self, text: str) -> BranchCounts:
        """Plain counting of one process whose image lies at `BASE`."""
        seen: Counter[tuple[int | None, int | None, int | None]] = Counter()
        missed: Counter[tuple[int | None, int | None, int | None]] = Counter()
        for line in text.splitlines():
            end = None
            for entry in line.split()[1:]:
                fields = entry.split("/")
                from_, to = (self._image(int(field, 16)) for field in fields[:2])
                trace = from_, to, end if to is not None else None
                seen[trace] += 1
                missed[trace] += fields[2] == "M"
                end = from_
        traces = [t for t in seen if t[0] is not None or t[1] is not None]
        counts = counts_of([(*t, seen[t]) for t in traces])
        misses = counts_of([(*t, missed[t] + 1) for t in traces])  # none may be left out
        return replace(counts, mispredicted=misses.count - np.uint64(1))

    def _image(self, address: int) -> int | None:
        return address - self.BASE if address in self.CODE else None


class TestRecordings:
    @pytest.mark.parametrize(
        "name", [f"{machine}/{name}" for machine, name in RECORDED if name.endswith(".pie")]
    )
    def test_lines_are_perf2bolts(self, name: str, tool: Tool, tmp_path: Path) -> None:
        binary = TESTBINS / name
        recording = TESTBINS / "recordings" / f"{name.replace('/', '-')}.perf.data"
        program = Program.open(binary)
        counted = count(open_source(recording), program.image.layout)
        tool("perf")
        command = [tool("perf2bolt-22"), "-p", recording, "-o", tmp_path / "fdata", binary]
        done = subprocess.run([*command, "-ignore-build-id"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        expected = lines_of_file(tmp_path / "fdata")
        assert lines_of(fdata_from_counts(counted.counts, program)[0]) == expected
        assert len(expected) > 100

    def test_bolt_takes_the_profile(self, tool: Tool, tmp_path: Path) -> None:
        binary = TESTBINS / "x86-64" / "shapes.pie"
        recording = TESTBINS / "recordings" / "x86-64-shapes.pie.perf.data"
        program = Program.open(binary)
        counted = count(open_source(recording), program.image.layout)
        fdata, _ = fdata_from_counts(counted.counts, program)
        fdata_file.write(fdata, tmp_path / "fdata")
        assert fdata.branches is not None
        functions = {line.split()[1] for line in lines_of(fdata) if line.startswith("1 ")}
        command = [tool("llvm-bolt-22"), binary, "-o", "/dev/null", "-data", tmp_path / "fdata"]
        done = subprocess.run(command, capture_output=True, text=True)
        said = re.search(r"(\d+) out of \d+ functions .* have non-empty", done.stdout)
        assert done.returncode == 0
        assert said is not None
        assert int(said[1]) >= len([name for name in functions if "PLT" not in name])
        assert "stale" not in done.stdout + done.stderr

    @pytest.mark.parametrize("name", ["interp.static", "shapes.static"])
    def test_files_that_perf2bolt_refuses(self, name: str) -> None:
        recording = TESTBINS / "recordings" / f"x86-64-{name}.perf.data"
        program = Program.open(TESTBINS / "x86-64" / name)
        counted = count(open_source(recording), program.image.layout)
        _, tally = fdata_from_counts(counted.counts, program)
        assert tally["fdata_runs"] > 0.95 * int(counted.counts.runs().count.sum())


class TestOpenssl:
    def test_bolt_finds_a_valid_profile_in_as_many_functions_as_its_own_reader(
        self, corpus: Corpus, tool: Tool, tmp_path: Path
    ) -> None:
        binary, preagg = corpus("bolt/openssl.zst"), corpus("bolt/openssl.preagg.txt.zst")
        bolt = tool("llvm-bolt-22")
        program = Program.open(binary)
        counted = count(open_source(preagg), program.image.layout)
        fdata_file.write(fdata_from_counts(counted.counts, program)[0], tmp_path / "x.fdata")
        said = subprocess.run(
            [bolt, binary, "-o", "/dev/null", "-data", tmp_path / "x.fdata"],
            capture_output=True,
            text=True,
        )
        assert said.returncode == 0
        assert "1089 out of 15102 functions" in said.stdout
        assert "stale" not in said.stdout + said.stderr


class TestWhatPerf2boltLeavesOut:
    def test_a_return_from_a_recursive_call_passed_the_block_of_the_call(
        self, built: Callable[[str], Path], tool: Tool, tmp_path: Path
    ) -> None:
        program = Program.open(built("assembly"))
        # `13: call recurses` / `11: dec %ebx`, which is a branch's target / …  / `12: ret`
        call, behind, back, ret = (
            address(program, "recurses", at) for at in (0xB, 0x10, 0x12, 0x14)
        )
        traces: list[Trace] = [(ret, behind, back, 7)]
        counts = counts_of(traces)
        edge = "1 recurses b 1 recurses 10 0 7"
        exact, _ = fdata_from_counts(counts, program)
        compatible, _ = fdata_from_counts(counts, program, AS_PERF2BOLT)
        assert lines_of(exact) == {edge}
        assert lines_of(compatible) == set()
        assert perf2bolt(tool("perf2bolt-22"), built("assembly"), counts, tmp_path) == set()
        assert call < behind

    def test_functions_with_loop_instructions_have_runs(self, built: Callable[[str], Path]) -> None:
        program = Program.open(built("assembly"))
        start = address(program, "short_loop")
        counts = counts_of([(None, start, start + 10, 3)])
        exact, tally = fdata_from_counts(counts, program)
        assert tally["fdata_runs"] == 3
        assert "1 short_loop 5 1 short_loop 7 0 3" in lines_of(exact)
        _, tally = fdata_from_counts(counts, program, AS_PERF2BOLT)
        assert (tally["fdata_runs"], tally["fdata_runs/non_simple"]) == (0, 3)

    def test_functions_with_cold_parts_have_runs(self, built: Callable[[str], Path]) -> None:
        program = Program.open(built("gcc-fixed"))
        assert program.symbols.by_name("dense") is not None
        split = Program.open(built("gcc-pie"))
        start = address(split, "with_cold_part")
        counts = counts_of([(None, start, start + 0x15, 4)])
        assert fdata_from_counts(counts, split)[1]["fdata_runs"] == 4
        assert fdata_from_counts(counts, split, AS_PERF2BOLT)[1]["fdata_runs/non_simple"] == 4


class TestRows:
    @pytest.fixture
    def program(self, built: Callable[[str], Path]) -> Program:
        return Program.open(built("assembly"))

    def rows(self, program: Program, *traces: Trace) -> set[str]:
        return lines_of(fdata_from_counts(counts_of(traces), program)[0])

    def test_a_branch_between_functions(self, program: Program) -> None:
        call, target = address(program, "_start"), address(program, "counted")
        assert self.rows(program, (call, target, None, 5)) == {"1 _start 0 1 counted 0 0 5"}

    def test_a_branch_from_outside_and_one_to_outside(self, program: Program) -> None:
        inside = address(program, "counted", 2)
        assert self.rows(program, (None, inside, None, 5), (inside, None, None, 6)) == {
            "0 [unknown] 0 1 counted 2 0 5",
            "1 counted 2 0 [unknown] 0 0 6",
        }

    def test_places_in_no_function_are_unknown(self, program: Program) -> None:
        start = address(program, "counted")
        assert self.rows(program, (1, start, None, 5), (1, 2, None, 9)) == {
            "0 [unknown] 0 1 counted 0 0 5"
        }

    def test_returns_leave_no_row_but_their_runs_do(self, program: Program) -> None:
        ret = address(program, "untyped", 0x9)
        behind, end = address(program, "_start", 0xF), address(program, "_start", 0x1B)
        counts = counts_of([(ret, behind, end, 5)])
        fdata, tally = fdata_from_counts(counts, program)
        assert lines_of(fdata) == set()
        assert (tally["fdata_branches/returns"], tally["fdata_runs"]) == (5, 5)

    def test_a_return_that_only_the_input_knows(self, program: Program) -> None:
        behind = address(program, "recurses", 0x10)
        rows = counts_of([(None, behind, behind + 2, 5)])
        known = np.array([BRANCH | RETURN | TO | END], np.uint8)
        counts = aggregate(rows.from_, rows.to, rows.end, known, rows.count, rows.mispredicted)
        fdata, tally = fdata_from_counts(counts, program)
        assert lines_of(fdata) == {"1 recurses b 1 recurses 10 0 5"}
        assert tally["fdata_branches/returns"] == 5

    def test_a_bare_run_does_not_begin_in_the_call_before_it(self, program: Program) -> None:
        behind = address(program, "recurses", 0x10)
        rows = counts_of([(None, behind, behind + 2, 5)])
        known = np.array([TO | END], np.uint8)
        counts = aggregate(rows.from_, rows.to, rows.end, known, rows.count, rows.mispredicted)
        assert lines_of(fdata_from_counts(counts, program)[0]) == set()

    def test_mispredictions_and_equal_rows_add_up(self, program: Program) -> None:
        back, top = address(program, "counted", 7), address(program, "counted", 2)
        columns = [np.array([x, x], np.uint64) for x in (back, top)]
        counts = aggregate(
            columns[0], columns[1],
            np.array([0, back], np.uint64),
            np.array([BRANCH | FROM | TO, BRANCH | FROM | TO | END], np.uint8),
            np.array([3, 4], np.uint64), np.array([1, 2], np.uint64),
        )  # fmt: skip
        assert lines_of(fdata_from_counts(counts, program)[0]) == {"1 counted 7 1 counted 2 3 7"}

    def test_what_is_not_written_is_tallied_by_reason(self, program: Program) -> None:
        counted, untyped = address(program, "counted"), address(program, "untyped")
        traces = [
            (None, counted, untyped, 1),  # in two functions
            (None, counted + 2, counted, 2),  # backwards
            (None, counted + 0x2B, counted + 0x2A, 4),
            (None, counted, 0x10, 8),  # ends outside
            (None, counted + 0x28, counted + 0x2B, 16),  # over a return
        ]
        _, tally = fdata_from_counts(counts_of(traces), program)
        assert tally["fdata_runs/two_functions"] == 1
        assert tally["fdata_runs/outside_functions"] == 8
        assert tally["fdata_runs/backwards"] == 2 + 4
        assert tally["fdata_runs/broken"] == 16
        assert tally["fdata_runs"] == 0
        assert tally["fdata_branches"] == 31

    def test_no_counts_make_no_rows(self, program: Program) -> None:
        fdata, tally = fdata_from_counts(counts_of([]), program)
        assert fdata.branches is not None
        assert len(fdata.branches) == 0
        assert not any(tally.values())

    def test_runs_and_rows_are_whole(self, built: Callable[[str], Path]) -> None:
        program = Program.open(built("clang-exceptions"))
        counts = counts_of(RandomTraces(program, seed=4).draw(400))
        _, tally = fdata_from_counts(counts, program)
        runs = sum(n for key, n in tally.items() if key.startswith("fdata_runs"))
        branches = sum(n for key, n in tally.items() if key.startswith("fdata_branches"))
        assert runs == int(counts.count[counts.has(TO | END)].sum())
        assert branches == int(counts.count[counts.has(BRANCH)].sum())


class TestDamagedBinaries:
    def test_without_any_function_nothing_is_written(
        self, built: Callable[[str], Path], tool: Tool, tmp_path: Path
    ) -> None:
        bare = tmp_path / "bare"
        subprocess.run([tool("strip"), "-o", bare, built("assembly")], check=True)
        program = Program.open(built("assembly"))
        counts = counts_of(RandomTraces(program, seed=5).draw(50))
        found, tally = fdata_from_counts(counts, Program.open(bare))
        assert lines_of(found) == set()
        assert tally["fdata_branches"] == tally["fdata_runs"] == 0

    @pytest.mark.parametrize("name", ["clang-library", "gcc-exceptions-relocations"])
    def test_damage_is_survived_or_reported(
        self, name: str, built: Callable[[str], Path], tmp_path: Path
    ) -> None:
        whole = built(name)
        program, content = Program.open(whole), whole.read_bytes()
        counts = counts_of(RandomTraces(program, seed=6).draw(100))
        sections = [s for s in program.image.sections if s.size and s.file_offset]
        chance = random.Random(6)
        for _ in range(60):
            damaged = bytearray(content)
            for _ in range(chance.choice([1, 5, 50])):
                section = chance.choice(sections)
                at = section.file_offset + chance.randrange(section.size)
                if at + 8 <= len(damaged):
                    damaged[at : at + 8] = chance.choice([bytes(8), b"\xff" * 8, b"\x90" * 8])
            (tmp_path / "damaged").write_bytes(damaged)
            with contextlib.suppress(InputError):
                fdata_from_counts(counts, Program.open(tmp_path / "damaged"))


def test_every_reason_is_explained(built: Callable[[str], Path]) -> None:
    known = {step.key: step.reasons for step in FORMAT.steps}
    program = Program.open(built("gcc-pie"))
    counts = counts_of(RandomTraces(program, seed=4).draw(400))
    for options in (OURS, AS_PERF2BOLT):
        _, tally = fdata_from_counts(counts, program, options)
        losses = [key.split("/") for key in tally if "/" in key]
        assert losses
        assert all(reason in known[step] for step, reason in losses)


def test_the_sources_of_the_programs_are_there() -> None:
    assert {path.name for path in SOURCES.iterdir()} == {
        "dispatch.c",
        "odd.s",
        "other.c",
        "throws.cpp",
    }


def converted(recording: Path, binary: Path, out: Path, *, no_lbr: bool = True) -> Conversion:
    asked = (output("fdata", out, samples=True),)
    return convert(ConvertOptions((recording,), binary, outputs=asked, no_lbr=no_lbr, force=True))


@pytest.mark.parametrize("name", ["interp.pie", "shapes.pie"])
def test_samples_are_those_of_perf2bolt(name: str, tmp_path: Path, tool: Tool, run) -> None:
    recording = TESTBINS / "recordings" / f"x86-64-{name}.perf.data"
    binary, ours, theirs = TESTBINS / "x86-64" / name, tmp_path / "ours", tmp_path / "theirs"
    done = converted(recording, binary, ours)
    check(done.tallies, steps())
    assert done.tallies["fdata_samples"] == done.tallies["instructions_in_image"]
    run(tool("perf2bolt-22"), binary, "-p", recording, "-basic-events", "-o", theirs)
    assert sorted(ours.read_text().splitlines()) == sorted(theirs.read_text().splitlines())
    assert ours.read_text().startswith("no_lbr taken-branches:u:\n")


def test_llvm_bolt_takes_them(tmp_path: Path, tool: Tool, run) -> None:
    out = tmp_path / "app.fdata"
    converted(RECORDING, PIE, out)
    done = run(tool("llvm-bolt-22"), PIE, "-data", out, "-o", "/dev/null")
    assert "non-empty execution profile" in done.stdout + done.stderr


def test_recorded_branches_are_no_samples(tmp_path: Path) -> None:
    with pytest.raises(IncompleteError, match="recorded branches tell more") as told:
        converted(RECORDING, PIE, tmp_path / "app.fdata", no_lbr=False)
    assert "--no-lbr" in (told.value.cure or "")
    assert not (tmp_path / "app.fdata").exists()
