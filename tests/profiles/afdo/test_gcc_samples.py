"""What GCC is told, against create_gcov on the same recording, and gcc itself."""

from __future__ import annotations

import re
import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import Run, Tool

from lbr2pgo.profiles.afdo import afdo
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples
from lbr2pgo.sources.perf_data.reader import PerfData

TESTS = Path(__file__).parents[2]
SOURCES = TESTS.parent / "testbins" / "src"
PERIODS = {
    SOURCES / "interp.c": 40009,
    SOURCES / "shapes.cpp": 1009,
    TESTS / "programs" / "inlining.c": 53,
}


@dataclass(frozen=True, slots=True)
class Recorded:
    """A program that gcc compiled, and its recording."""

    source: Path
    compiler: str
    binary: Path
    recording: Path


@pytest.fixture(scope="module", params=PERIODS, ids=lambda path: path.name)
def recorded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tool: Tool, run: Run
) -> Recorded:
    source = request.param
    compiler = tool("gcc-12" if source.suffix == ".c" else "g++-12")
    binary = tmp_path_factory.mktemp("gcc") / source.stem
    # create_gcov 0.19 reads no DWARF 5.
    run(compiler, "-O2", "-g", "-gdwarf-4", source, "-o", binary)
    recording = binary.with_suffix(".data")
    words = ("record", "--emulate", "-c", PERIODS[source], "-o", recording)
    done = run(
        sys.executable, "-m", "lbr2pgo", *words, "--", binary, *_arguments(source), check=False
    )
    assert recording.exists(), done.stderr  # the exit code is the program's
    return Recorded(source, compiler, binary, recording)


def _arguments(source: Path) -> tuple[str, ...]:
    return ("20",) if source.suffix == ".cpp" else ()


def converted(recorded: Recorded, run: Run, *words: object) -> Path:
    path = recorded.binary.with_suffix(".afdo")
    given = ("convert", recorded.recording, "--binary", recorded.binary, "--afdo", path)
    run(sys.executable, "-m", "lbr2pgo", *given, *words)
    return path


def mass(path: Path) -> Counter[tuple[object, ...]]:
    """Counts by inline path, function and location."""
    found: Counter[tuple[object, ...]] = Counter()

    def add(function: FunctionSamples, path: tuple[object, ...]) -> None:
        for location, count in function.body.items():
            found[(*path, function.name, location)] += count
        for location, callee in function.inlined():
            add(callee, (*path, function.name, location))

    for each in afdo.read(path).samples.functions.values():
        add(each, ())
    return found


def test_counts_are_those_of_create_gcov(recorded: Recorded, tool: Tool, run: Run) -> None:
    """But for lambdas: GCC says of no `operator()` where it is declared, and the tools differ."""
    theirs = recorded.binary.with_suffix(".gcov")
    words = (f"--binary={recorded.binary}", f"--profile={recorded.recording}", f"--gcov={theirs}")
    run(tool("create_gcov"), *words, "-gcov_version=2")
    wanted = Counter({k: n for k, n in mass(theirs).items() if "operator()" not in k})
    found = mass(converted(recorded, run))
    equal = sum(min(count, found[key]) for key, count in wanted.items())
    assert wanted.total() > 50_000
    assert equal >= 0.99 * wanted.total()


def test_gcc_compiles_with_it_without_complaint(
    recorded: Recorded, run: Run, tmp_path: Path
) -> None:
    use = f"-fauto-profile={converted(recorded, run)}"
    program = tmp_path / "optimised"
    done = run(recorded.compiler, "-O2", "-g", "-Wall", use, recorded.source, "-o", program)
    assert done.stderr == ""
    words = _arguments(recorded.source)
    made = (run(each, *words, check=False) for each in (program, recorded.binary))
    assert len({(each.returncode, each.stdout) for each in made}) == 1


@pytest.mark.parametrize(("numbers", "version"), [((10, 11), 1), ((16, 17, 18), 3)])
def test_older_and_newer_gcc_read_the_version_that_is_theirs(
    recorded: Recorded, run: Run, tmp_path: Path, numbers: tuple[int, ...], version: int
) -> None:
    plain = Path(recorded.compiler).name.removesuffix("-12")
    found = [name for n in numbers if (name := shutil.which(f"{plain}-{n}")) is not None]
    if not found:
        pytest.skip(f"no {plain} of {numbers} is installed")
    for compiler in found:
        use = f"-fauto-profile={converted(recorded, run, '--afdo-version', version)}"
        words = ("-O2", "-g", "-Wall", use, recorded.source, "-c", "-o", tmp_path / "optimised.o")
        done = run(compiler, *words, f"-fdump-ipa-afdo-details={tmp_path}/dump")
        assert done.stderr == ""
        dump = (tmp_path / "dump").read_text(errors="replace")
        assert re.search(r"\bcount:? [1-9]", dump), "no count found its place"


@pytest.fixture
def gcc_16() -> str:
    found = shutil.which("gcc-16")
    if found is None:
        pytest.skip("gcc-16 is not installed")
    return found


def recording_of(binary: Path, run: Run) -> Path:
    """One of a run of it, beside it."""
    recording = binary.with_suffix(".data")
    words = ("record", "--emulate", "-c", 101, "-o", recording, "--", binary)
    run(sys.executable, "-m", "lbr2pgo", *words)
    return recording


def test_gcc_16_orders_functions_by_when_they_were_first_seen(
    gcc_16: str, run: Run, tmp_path: Path
) -> None:
    source, binary = tmp_path / "order.c", tmp_path / "order"
    source.write_text(
        "#define F(n) __attribute__((noinline)) static long f##n(long s) { \\\n"
        "  for (long i = 0; i < 20000; i++) s = s * 31 + (i & 7 ? n : s >> 3); return s; }\n"
        "F(1) F(2) F(3) F(4)\n"
        "int main(void) { return f3(f1(f4(f2(1)))) == 1; }\n"
    )
    run(gcc_16, "-O2", "-g", source, "-o", binary)
    given = Recorded(source, gcc_16, binary, recording_of(binary, run))
    path = converted(given, run, "--afdo-version", 3)
    use = (f"-fauto-profile={path}", "-fprofile-reorder-functions")
    run(gcc_16, "-O2", "-g", *use, source, "-o", binary)
    symbols = [
        line.split()[-1].partition(".")[0] for line in run("nm", "-n", binary).stdout.splitlines()
    ]
    assert [name for name in symbols if name in FOUR] == ["f2", "f4", "f1", "f3"]


def test_gcc_16_finds_bodies_of_parallel_loops_by_their_own_names(
    gcc_16: str, run: Run, tmp_path: Path
) -> None:
    source, binary = tmp_path / "parallel.c", tmp_path / "parallel"
    source.write_text(
        "__attribute__((noinline)) static long sum(long n) {\n"
        "  long s = 0;\n"
        "#pragma omp parallel for reduction(+:s) num_threads(1)\n"
        "  for (long i = 0; i < n; i++) if (i % 3) s += i; else s ^= i;\n"
        "  return s; }\n"
        "int main(void) { return sum(30000) == 1; }\n"
    )
    flags = ("-O2", "-g", "-fopenmp")
    run(gcc_16, *flags, source, "-o", binary)
    given = Recorded(source, gcc_16, binary, recording_of(binary, run))
    older = afdo.read(converted(given, run)).samples.functions
    assert "sum._omp_fn.0" not in older
    path = converted(given, run, "--afdo-version", 3)
    assert afdo.read(path).samples.functions["sum._omp_fn.0"].total > 1000
    use = (f"-fauto-profile={path}", f"-fdump-ipa-afdo-details={tmp_path}/dump")
    run(gcc_16, *flags, *use, "-c", source, "-o", tmp_path / "parallel.o")
    assert "Annotating BB profile of sum._omp_fn.0" in (tmp_path / "dump").read_text()
    check = ("check", given.recording, "--binary", binary, "--against", path)
    run(sys.executable, "-m", "lbr2pgo", *check, "--min-overlap", 0.999999)


STEPS = {
    "one.c": "static __attribute__((noinline)) long step(long n) {\n"
    "  return n % 7 ? n / 2 : n * 5; }\n"
    "long other(long n);\n"
    "int main(void) { long s = 0;\n"
    "  for (long i = 0; i < 20000; i++) s += step(i) ^ other(i);\n"
    "  return s == 42; }\n",
    "two.c": "static __attribute__((noinline)) long step(long n) {\n"
    "  long s = 0;\n"
    "  for (long i = 0; i < (n & 31); i++)\n"
    "    if (i % 5) s += i; else s ^= n;\n"
    "  return s; }\n"
    "long other(long n) { return step(n) + step(n + 1); }\n",
}


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory, tool: Tool, run: Run) -> Recorded:
    """Two files with a static function of one name."""
    folder = tmp_path_factory.mktemp("steps")
    for name, text in STEPS.items():
        (folder / name).write_text(text)
    binary = folder / "steps"
    run(tool("gcc-12"), "-O2", "-g", *STEPS, "-o", binary, cwd=folder)
    return Recorded(folder / "one.c", "gcc-12", binary, recording_of(binary, run))


def test_version_3_tells_statics_of_one_name_apart_by_their_files(
    steps: Recorded, run: Run
) -> None:
    older = afdo.read(converted(steps, run))
    newer = afdo.read(converted(steps, run, "--afdo-version", 3))
    (one, first), (two, second) = sorted(newer.files.items(), key=lambda item: item[1])
    assert (first, second) == ("one.c", "two.c")
    both = [newer.samples.functions[name] for name in (one, two)]
    assert max(line for line, _ in both[0].body) == 1
    assert max(line for line, _ in both[1].body) == 4
    whole = older.samples.functions["step"]
    assert whole.head == sum(each.head for each in both)
    assert "step" not in newer.samples.functions
    calls = newer.samples.functions["other"].call_targets.values()
    assert {name for targets in calls for name in targets} == {two}


def test_gcc_16_finds_each_of_them(gcc_16: str, steps: Recorded, run: Run) -> None:
    folder = steps.binary.parent
    path = converted(steps, run, "--afdo-version", 3)
    profile = afdo.read(path)
    for name, file in profile.files.items():
        dump = folder / f"{file}.dump"
        use = (f"-fauto-profile={path}", f"-fdump-ipa-afdo-details={dump}")
        run(gcc_16, "-O2", "-g", *use, "-c", folder / file, "-o", folder / "step.o")
        said = dump.read_text().partition("Annotating BB profile of step/")[2]
        assert f"step total:{profile.samples.functions[str(name)].total} " in said


FOUR = ("f1", "f2", "f3", "f4")


def test_version_3_holds_when_functions_were_first_seen(recorded: Recorded, run: Run) -> None:
    plain = afdo.read(converted(recorded, run))
    newer = afdo.read(converted(recorded, run, "--afdo-version", 3))
    assert newer.version == 3
    assert newer.samples == plain.samples
    assert not plain.first_seen
    assert newer.samples.functions.keys() == newer.first_seen.keys()
    times = np.concatenate([batch.time for batch in PerfData(recorded.recording).batches()])
    assert set(newer.first_seen.values()) <= set(times.tolist())


def test_check_compares_it_with_its_recording(recorded: Recorded, run: Run) -> None:
    path = converted(recorded, run)
    words = ("check", recorded.recording, "--binary", recorded.binary, "--against", path)
    run(sys.executable, "-m", "lbr2pgo", *words, "--min-overlap", 0.999999)
    own = run(sys.executable, "-m", "lbr2pgo", "check", path, "--binary", recorded.binary,
              "--max-stale", 0, "--max-missing", 0)  # fmt: skip
    assert "stale" in own.stdout


def test_functions_without_a_linkage_name_have_their_symbols(
    tool: Tool, run: Run, tmp_path: Path
) -> None:
    """GCC writes none for what is in an unnamed namespace; two classes may have an `area`."""
    if shutil.which("g++-12") is None:
        pytest.skip("g++-12 is not installed")
    source = tmp_path / "areas.cpp"
    source.write_text(
        "namespace {\n"
        "struct A { virtual long area(long n) { return n * 3; } virtual ~A() {} };\n"
        "struct B : A { long area(long n) override { return n ^ 5; } };\n"
        "}\n"
        "int main(int argc, char **) {\n"
        "  A a; B b; A *both[] = {&a, &b}; long sum = 0;\n"
        "  for (long n = 0; n < 300000; n++) sum += both[(n * argc) & 1]->area(sum);\n"
        "  return sum & 1;\n"
        "}\n"
    )
    binary = tmp_path / "areas"
    run("g++-12", "-O2", "-g", "-fno-devirtualize-speculatively", source, "-o", binary)
    recording = tmp_path / "areas.data"
    words = ("record", "--emulate", "-c", 1009, "-o", recording, "--", binary)
    run(sys.executable, "-m", "lbr2pgo", *words, check=False)
    found = afdo.read(converted(Recorded(source, "g++-12", binary, recording), run)).samples
    names = {"_ZN12_GLOBAL__N_11A4areaEl", "_ZN12_GLOBAL__N_11B4areaEl"}
    assert names <= found.functions.keys()
    assert all(found.functions[name].head > 1000 for name in names)
    called = [targets for targets in found.functions["main"].call_targets.values() if targets]
    assert any(names <= targets.keys() for targets in called)
