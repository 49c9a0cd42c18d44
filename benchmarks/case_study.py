"""What profiles gain in SQLite and LevelDB: the tables of docs/notes/case-study.md, a picture.

``python benchmarks/case_study.py FOLDER [--only=NAME] [--picture=FILE]``

The folder keeps sources, builds and profiles. It wants npm, which brings the sources, clang 22,
lld 22, llvm-profdata 22 and llvm-bolt 22.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

DRIVERS = Path(__file__).parent / "programs"
LBR2PGO = (sys.executable, "-m", "lbr2pgo")
FLAGS = ("-O2", "-g1", "-fdebug-info-for-profiling", "-fuse-ld=lld",
         "-Wl,--build-id,--emit-relocs")  # fmt: skip
PROBES = "-fpseudo-probe-for-profiling"
BOLT = ("-reorder-blocks=ext-tsp", "-reorder-functions=cdsort", "-split-functions",
        "-split-all-cold")  # fmt: skip
PERIOD = 499
NOT_PART_OF_LEVELDB = ("_test.cc", "bench.cc", "testutil.cc", "testharness.cc", "util/dumpfile.cc",
                       "leveldbutil.cc")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Study:
    """A program, from where its sources come, and what it is run with."""

    name: str
    package: str
    compile: Sequence[object]
    training: Sequence[object]
    judged: Sequence[object]
    folder: Path

    def build(self, name: str, *flags: str) -> Path:
        """Compile and link with these options more."""
        out = self.folder / name
        call(*self.compile, *FLAGS, *flags, "-o", out)
        return out

    def convert(self, program: Path, output: str, profile: Path) -> Path:
        """Record the training run, and write a profile of it."""
        recording = program.with_suffix(".data")
        call(*LBR2PGO, "record", "--emulate", "-c", PERIOD, "-o", recording, "--", program,
             *self.training)  # fmt: skip
        call(*LBR2PGO, "convert", recording, "--binary", program, output, profile)
        return profile

    def measure(self, programs: Sequence[Path]) -> list[Mapping[str, float]]:
        """Instructions and taken branches of the judged run, counted."""
        words = ("measure", "--runs", 0, "--format", "json", *programs, "--", *self.judged)
        return [each["counts"] for each in json.loads(call(*LBR2PGO, *words))["programs"]]


@dataclass(frozen=True, slots=True)
class Row:
    """What one build of a program did."""

    label: str
    instructions: float
    taken: float


def call(*words: object) -> str:
    """Run a command, which is shown; what it prints."""
    print("$", *words, file=sys.stderr, flush=True)
    return subprocess.run(
        list(map(str, words)), check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def fetched(package: str, folder: Path) -> Path:
    """The sources that a package of npm carries."""
    sources = folder / "sources"
    if not sources.exists():
        folder.mkdir(parents=True, exist_ok=True)
        packed = call("npm", "pack", "--silent", "--pack-destination", folder, package).split()[-1]
        with tarfile.open(folder / packed) as archive:
            archive.extractall(sources, filter="data")
    return sources / "package" / "deps"


def sqlite(folder: Path) -> Study:
    """SQLite, and a shop's orders."""
    package = "better-sqlite3@12.11.1"
    source = fetched(package, folder) / "sqlite3"
    words = ("clang-22", "-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION", "-I", source,
             DRIVERS / "shop.c", source / "sqlite3.c", "-lm")  # fmt: skip
    return Study("SQLite", package, words, (10_000, 1, 6), (30_000, 7, 9), folder)


def leveldb(folder: Path) -> Study:
    """LevelDB, and a store of keys."""
    package = "leveldown@6.1.1"
    source = fetched(package, folder) / "leveldb" / "leveldb-1.20"
    files = [
        file
        for part in ("db", "table", "util", "port", "helpers/memenv")
        for file in sorted((source / part).glob("*.cc"))
        if not str(file).endswith(NOT_PART_OF_LEVELDB)
    ]
    words = ("clang++-22", "-std=c++17", "-w", "-pthread", "-DLEVELDB_PLATFORM_POSIX", "-DOS_LINUX",
             "-I", source, "-I", source / "include", DRIVERS / "store.cc", *files)  # fmt: skip
    return Study("LevelDB", package, words, (10_000, 1, 100), (30_000, 7, 60), folder)


STUDIES = {"sqlite": sqlite, "leveldb": leveldb}


def instrumented(study: Study) -> Path:
    """The build with a profile that counters in the program took."""
    raw, profile = study.folder / "counters", study.folder / "counters.profdata"
    counting = study.build("counting", f"-fprofile-generate={raw}")
    call(counting, *study.training)
    call("llvm-profdata-22", "merge", "-o", profile, raw)
    return study.build("instrumented", f"-fprofile-use={profile}")


def bolted(study: Study, program: Path) -> Path:
    """A build laid out by BOLT with a recording of itself."""
    fdata = study.convert(program, "--fdata", program.with_suffix(".fdata"))
    out = program.with_suffix(".bolt")
    call("llvm-bolt-22", program, "-o", out, "-data", fdata, *BOLT)
    return out


def builds(study: Study) -> dict[str, Path]:
    """Each build by what the page calls it, the plain one first."""
    plain, probed = study.build("plain"), study.build("probed", PROBES)
    lines = study.convert(plain, "--llvm", study.folder / "lines.prof")
    probes = study.convert(probed, "--llvm", study.folder / "probes.prof")
    by_lines = study.build("by-lines", f"-fprofile-sample-use={lines}")
    by_probes = study.build("by-probes", PROBES, f"-fprofile-sample-use={probes}")
    return {
        "`-O2`": plain,
        "AutoFDO by lines": by_lines,
        "AutoFDO by probes": by_probes,
        "AutoFDO by lines, then BOLT": bolted(study, by_lines),
        "AutoFDO by probes, then BOLT": bolted(study, by_probes),
        "instrumented PGO": instrumented(study),
    }


def hottest(study: Study) -> str:
    """What a report says of the plain build's training."""
    plain = study.folder / "plain"
    words = ("--binary", plain, "--only", "hot-functions", "--top", 5)
    return call(*LBR2PGO, "report", plain.with_suffix(".data"), *words)


def rows(study: Study) -> list[Row]:
    """Build all, and count."""
    made = builds(study)
    counts = study.measure(list(made.values()))
    return [
        Row(label, count["instructions"], count["taken"])
        for label, count in zip(made, counts, strict=True)
    ]


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown, with ratios to the first."""
    lines = ["| build | instructions | | taken branches | |", "| --- | ---: | ---: | ---: | ---: |"]
    base = rows[0]
    for row in rows:
        ratios = row.instructions / base.instructions, row.taken / base.taken
        lines.append(f"| {row.label} | {row.instructions:,} | {ratios[0]:.3f} "
                     f"| {row.taken:,} | {ratios[1]:.3f} |")  # fmt: skip
    return "\n".join(lines)


_LEFT, _WIDTH, _BAR = 220, 360, 11


def picture(results: Mapping[str, Sequence[Row]]) -> str:
    """Bars of each build's instructions and taken branches, as SVG."""
    drawn = [
        '<text x="220" y="20" fill="#36c">instructions</text>',
        '<text x="310" y="20" fill="#c96">taken branches</text>',
    ]
    y = 30
    for name, rows in results.items():
        drawn.append(f'<text x="10" y="{y + 14}" font-weight="bold">{name}</text>')
        y += 22
        for row in rows:
            drawn.extend(_bars(y, row, rows[0]))
            y += 3 * _BAR
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 60} {y}" '
        'font-family="sans-serif" font-size="12">\n'
        '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(drawn) + "\n</svg>\n"
    )


def _bars(y: int, row: Row, base: Row) -> Iterator[str]:
    label = row.label.replace("`", "")
    yield f'<text x="{_LEFT - 8}" y="{y + 15}" text-anchor="end">{label}</text>'
    ratios = (row.instructions / base.instructions, "#36c"), (row.taken / base.taken, "#c96")
    for i, (ratio, colour) in enumerate(ratios):
        top, width = y + i * _BAR, ratio * _WIDTH
        yield (f'<rect x="{_LEFT}" y="{top}" width="{width:.1f}" height="{_BAR - 1}" '
               f'fill="{colour}"/>')  # fmt: skip
        yield (f'<text x="{_LEFT + width + 5:.1f}" y="{top + _BAR - 2}" font-size="10">'
               f"{ratio:.3f}</text>")  # fmt: skip


def main() -> None:
    """Build, measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=STUDIES, help="one of the programs")
    parser.add_argument("--picture", type=Path, help="where the bars go, as SVG")
    args = parser.parse_args()
    results = {}
    for name in (args.only,) if args.only else STUDIES:
        study = STUDIES[name](args.folder.resolve() / name)
        results[study.name] = rows(study)
        print(f"{study.name} ({study.package})\n\n{table(results[study.name])}\n")
        print(hottest(study), flush=True)
    if args.picture:
        args.picture.write_text(picture(results))


if __name__ == "__main__":
    main()
