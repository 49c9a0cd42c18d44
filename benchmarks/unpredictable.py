"""What clang makes of the branches that `convert --unpredictable` names.

``python benchmarks/unpredictable.py FOLDER SOURCE... [--flags=FLAGS] [--train=WORDS]
[--arguments=WORDS] [--rounds N]``

clang 22 reads no hints, so they are put into its intermediate code as `__builtin_unpredictable` in
the source would be: the branches of a line that is named are marked. Prints how well mispredictions
are presumed of branches that were not taken, which the emulator's predictor knows, and a row a
build, with ratios to the one without hints: at -O2, then with a sample profile of the same run.
Mispredictions there are those of `measure --model zen4`. It wants clang 22 and lld 22.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from startup import LBR2PGO, compiler_of, program_parser, run

from lbr2pgo.model.branch_stacks import BRANCH_TYPES
from lbr2pgo.model.exact_counts import ExactCounts
from lbr2pgo.pgo.measurements import measure_programs
from lbr2pgo.pgo.timing import Rounds
from lbr2pgo.profiles.llvm.mispredicted import ONE_IN, presumed

COMPILED = "-O2", "-g", "-fdebug-info-for-profiling"
_LOCATION = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+), .*?scope: !(\d+)", re.M)
_SCOPE = re.compile(r"^!(\d+) = .*[(, ]file: !(\d+)", re.M)
_FILE = re.compile(r'^!(\d+) = !DIFile\(filename: "([^"]*)", directory: "([^"]*)"', re.M)
_BRANCH = re.compile(r"^  (?:br i1|(?:%\S+ = )?select) .*!dbg !(\d+).*$", re.M)
Lines = set[tuple[str, int]]


def hinted_lines(hints: Path) -> Lines:
    """Files, as whole paths, and lines."""
    rows = [line.split("\t") for line in hints.read_text().splitlines() if "\t" in line]
    places = (row[0].removeprefix("# ").rpartition(":") for row in rows)
    return {(file, int(line.partition(".")[0])) for file, _, line in places}


def marked(code: str, lines: Lines) -> tuple[str, int]:
    """Intermediate code with the branches of these lines marked, and how many they are."""
    files = {number: str(Path(folder, name)) for number, name, folder in _FILE.findall(code)}
    file_of = {scope: files.get(number, "") for scope, number in _SCOPE.findall(code)}
    known = {
        number
        for number, line, scope in _LOCATION.findall(code)
        if (file_of.get(scope, ""), int(line)) in lines
    }
    found = [match for match in _BRANCH.finditer(code) if match[1] in known]
    pieces, end = [], 0
    for match in found:
        pieces += [code[end : match.end()], ", !unpredictable !{}"]
        end = match.end()
    return "".join((*pieces, code[end:])), len(found)


@dataclass(frozen=True, slots=True)
class Bench:
    """A program that is built of its intermediate code."""

    folder: Path
    sources: Sequence[str]
    flags: Sequence[str]

    def build(self, name: str, hints: Path | None, *use: object) -> Path:
        """Compile and link, with the branches marked that hints name."""
        lines = set() if hints is None else hinted_lines(hints)
        codes, branches = [], 0
        for number, source in enumerate(self.sources):
            code = self.folder / f"{name}-{number}.ll"
            early = "-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm"
            run(compiler_of(source), *COMPILED, *use, *early, *self.flags, source, "-o", code)
            text, count = marked(code.read_text(), lines)
            code.write_text(text)
            codes.append(code)
            branches += count
        out = self.folder / name
        linker = compiler_of(self.sources[0])
        run(linker, *COMPILED, *use, "-fuse-ld=lld", *codes, *self.flags, "-o", out)
        if hints is not None:
            print(f"{name}: {branches} branches of {len(lines)} lines", flush=True)
        return out


def print_truth(exact: Path, program: Path) -> None:
    """Of conditional branches with a thousandth of all mispredictions, or more."""
    counts = ExactCounts.load(exact)
    image = counts.find_image(None, str(program))
    rows = (counts.from_image == image) & (counts.kind == BRANCH_TYPES.index("COND"))
    _, branch = np.unique(counts.from_[rows], return_inverse=True)
    ran, missed, fell, fell_missed = (
        np.bincount(branch, column[rows] * (counts.taken[rows] == taken))
        for taken in (True, False)
        for column in (counts.count, counts.mispredicted)
    )
    found = presumed(ran, fell, missed / np.maximum(ran, 1))
    true, executed = missed + fell_missed, ran + fell
    named, hard = ((each >= executed / 5) & (each * ONE_IN >= each.sum()) for each in (found, true))
    both = true[named & hard].sum()
    print(
        f"presumed {found.sum() / true.sum():.2f} of all mispredictions; of those of branches that "
        f"are mispredicted in 20 of 100 executions {both / true[hard].sum():.2f} are named, and "
        f"{both / true[named].sum():.2f} of what is named is of such"
    )


def print_ratios(builds: Sequence[Path], arguments: Sequence[str], rounds: int) -> None:
    """Of all but the first to it."""
    base, *others = measure_programs(
        list(map(str, builds)), arguments, Rounds(rounds), None, model="zen4"
    ).programs
    for each in others:
        ours, theirs = each.counted.front_end, base.counted.front_end
        assert ours is not None
        assert theirs is not None
        columns = [
            f"{getattr(ours, name) / getattr(theirs, name):.3f}"
            for name in ("instructions", "taken", "directions", "cycles")
        ]
        if (time := each.time_ratio(base)) is not None:
            columns.append(f"{time.median:.3f} ({time.low:.3f} to {time.high:.3f})")
        print(f"| {Path(each.name).name} | {' | '.join(columns)} |", flush=True)


def main() -> None:
    """Build, measure and print."""
    parser = program_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(given.folder.resolve(), given.sources, given.flags)
    recording, profile, hints = (bench.folder / end for end in ("perf.data", "prof", "hints"))
    plain = bench.build("plain", None)
    exact = "--exact", bench.folder / "exact.npz"
    record = (*LBR2PGO, "record", "--emulate", "-c", 997, *exact, "-o", recording)
    run(*record, "--", plain, *given.train)
    print_truth(exact[1], plain)
    outputs = "--llvm", profile, "--unpredictable", hints
    run(*LBR2PGO, "convert", recording, "--binary", plain, *outputs)
    print("| build | instructions | taken | mispredicted | cycles (model) | user time |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, base, use in (
        ("hinted", plain, ()),
        ("hinted-pgo", None, (f"-fprofile-sample-use={profile}",)),
    ):
        first = base or bench.build("pgo", None, *use)
        builds = [first, bench.build(name, hints, *use)]
        print_ratios(builds, given.arguments or given.train, given.rounds)


if __name__ == "__main__":
    main()
