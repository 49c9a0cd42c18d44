"""Measure what a fleet costs: images in one pass, hosts merged, recordings counted by workers.

`make bench-fleet` makes the inputs (6 GB, below build/bench/fleet) and prints a line for each
command, and the ratios; nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import compileall
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import measure
import numpy as np
from inputs import CORPUS, unpacked

from lbr2pgo.fleet.counting import CountingPlan, count_file
from lbr2pgo.fleet.fleet_files import fleet_files
from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, aggregate
from lbr2pgo.profiles.counts import parquet_counts
from lbr2pgo.support.addresses import image_addresses

HERE = Path(__file__).parent
LBR2PGO = (sys.executable, "-m", "lbr2pgo")
LOOP = "--count-in-a-loop"
TRACES, ALIKE, OF_A_HOST = 400_000, 45_000, 98_000
"""Distinct traces of a program; those that every host has, and how many each has."""

_DUCKDB = """
import sys, duckdb
hosts, out = sys.argv[1:]
db = duckdb.connect(config={"threads": 2})
db.execute(f'''COPY (
    SELECT build_id, "from", "to", "end", known, sum(count)::UBIGINT, sum(mispredicted)::UBIGINT,
        sum(prediction_unknown)::UBIGINT
    FROM '{hosts}/*.parquet' GROUP BY ALL ORDER BY ALL
) TO '{out}' (COMPRESSION zstd)''')
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How much to measure, and where."""

    folder: Path
    times: int
    recordings: int

    def cost(self, name: str, command: Sequence[str], out: Path) -> measure.Cost:
        """Medians of what a command costs that writes below a folder, which is emptied first."""

        def run() -> measure.Cost:
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            return measure.run(command)

        found = measure.medians([run() for _ in range(self.times)])
        print(
            f"{name:<44} {found.wall:8.2f} s {found.cpu:8.2f} s of CPU {found.peak:7.0f} MB",
            flush=True,
        )
        return found


def images(wanted: Wanted) -> None:
    """SQLite alone, and with libc and the loader in one pass."""
    program, recording = _sqlite(wanted.folder)
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    libraries = re.findall(r"(/\S*/(?:libc|ld-linux)\S*)", listed)
    out = wanted.folder / "images"
    names = ("--llvm", f"{out}/{{name}}.prof", "--fdata", f"{out}/{{name}}.fdata")

    def convert(*binaries: str) -> list[str]:
        said = [word for path in binaries for word in ("--binary", path)]
        return [*LBR2PGO, "convert", str(recording), *said, *names]

    alone = wanted.cost("SQLite alone", convert(str(program)), out)
    all_of_them = convert(str(program), *libraries)
    together = wanted.cost("SQLite, libc and the loader in one pass", all_of_them, out)
    print(
        f"{together.wall / alone.wall:.2f} times the time, {together.cpu / alone.cpu:.2f} the CPU"
    )


def hosts(wanted: Wanted) -> None:
    """60 and 1,000 hosts merged, here and by DuckDB."""
    for number in (60, 1000):
        folder = wanted.folder / f"hosts{number}"
        files = [str(path) for path in _hosts(folder, number)]
        out = wanted.folder / "merged"
        merge = [*LBR2PGO, "merge", "-o", str(out / "all.parquet"), *files]
        wanted.cost(f"{number:,} hosts merged", merge, out)
        duck = [sys.executable, "-c", _DUCKDB, str(folder), str(out / "all.parquet")]
        wanted.cost(f"{number:,} hosts merged by DuckDB", duck, out)
    print(f"Parquet of a host: {Path(files[0]).stat().st_size / 1e6:.2f} MB")


def workers(wanted: Wanted) -> None:
    """Recordings counted in a loop, by one worker, and by two.

    The CPU is without that of the workers, which are children of a process that Dask has for them.
    """
    program, recording = _sqlite(wanted.folder)
    folder = _copies(recording, wanted.folder / "recordings", wanted.recordings)
    out = wanted.folder / "counted"
    fleet = [
        *LBR2PGO, "fleet", str(folder), "-o", str(out / "all.parquet"), "--binary", str(program),
        "--workers",
    ]  # fmt: skip
    loop = [sys.executable, __file__, LOOP, str(folder), str(out), str(program)]
    what = f"{wanted.recordings} recordings of {recording.stat().st_size / 1e6:.0f} MB"
    in_a_loop = wanted.cost(f"{what} in a loop", loop, out)
    one, two = (wanted.cost(f"{what}, {n} workers", [*fleet, str(n)], out) for n in (1, 2))
    print(f"one worker: {one.wall / in_a_loop.wall:.2f} times the loop; two: "
          f"{one.wall / two.wall:.2f} times as fast as one")  # fmt: skip


def count_in_a_loop(folder: str, store: str, program: str) -> None:
    """What a worker does, without any Dask."""
    plan = CountingPlan(Path(store), (Path(program),))
    for file in fleet_files([folder]):
        assert count_file(file, plan).content is not None


def _sqlite(folder: Path) -> tuple[Path, Path]:
    """SQLite, and a recording of it in the libraries of this machine: 60 MB."""
    program, recording = unpacked(CORPUS / "sq.zst", folder / "sq"), folder / "sq.perf.data"
    program.chmod(0o755)
    if not recording.exists():
        command = [*LBR2PGO, "record", "--emulate", "-c", "1009", "-o", str(recording), "--"]
        subprocess.run([*command, str(program)], check=True, stdout=subprocess.DEVNULL)
    return program, recording


def _copies(recording: Path, folder: Path, number: int) -> Path:
    """A folder of recordings that differ in what stands behind their last record."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for i in range(number):
        copy = folder / f"{i:03}.data"
        shutil.copy(recording, copy)
        with copy.open("ab") as stream:
            stream.write(i.to_bytes(8, "little"))
    return folder


def _hosts(folder: Path, number: int) -> Iterator[Path]:
    """Counts of hosts that ran one program, which is not there."""
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(1)
    from_, to = random.integers(0x400000, 0x2000000, (2, TRACES)).astype(np.uint64)
    end = to + random.integers(0, 200, TRACES).astype(np.uint64)
    for i in range(number):
        path = folder / f"{i:04}.parquet"
        if not path.exists():
            others = random.choice(np.arange(ALIKE, TRACES), OF_A_HOST - ALIKE, replace=False)
            rows = np.concatenate([np.arange(ALIKE), others])
            count = random.geometric(0.05, OF_A_HOST).astype(np.uint64)
            known = np.full(OF_A_HOST, BRANCH | FROM | TO | END, np.uint8)
            ends = (image_addresses(each[rows]) for each in (from_, to, end))
            counts = aggregate(*ends, known, count, count // np.uint64(20), build_id="aa" * 20)
            parquet_counts.write([counts], path)
        yield path


PARTS: dict[str, Callable[[Wanted], None]] = {"images": images, "hosts": hosts, "workers": workers}


def main() -> None:
    """Measure all parts, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}: all")
    parser.add_argument("--times", type=int, default=3, help="runs of each command")
    parser.add_argument("--recordings", type=int, default=100, help="how many workers count")
    parser.add_argument("--inputs", type=Path, default=HERE.parent / "build" / "bench" / "fleet")
    args = parser.parse_args()
    compileall.compile_dir(HERE.parent / "lbr2pgo", quiet=1)  # as installing it does
    args.inputs.mkdir(parents=True, exist_ok=True)
    wanted = Wanted(args.inputs.absolute(), args.times, args.recordings)
    for part in args.parts or PARTS:
        PARTS[part](wanted)


if __name__ == "__main__":
    if sys.argv[1:2] == [LOOP]:
        count_in_a_loop(*sys.argv[2:])
    else:
        main()
