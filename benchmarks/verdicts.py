"""Whether the verdicts of `lbr2pgo check` order what profiles then gain.

``python benchmarks/verdicts.py FOLDER [--only=NAME...]``

FOLDER/sources holds the source packages of Debian 12 (``apt-get source --download-only bzip2
lua5.3 lua5.4 zlib expat libyaml libjsoncpp``); builds and figures are kept beside it. Of each
program profiles are made that are good, thin, of other input, stale, another program's, or a faulty
recorder's. clang 22 and llvm-bolt 22 build from each, and a run on input that no profile has seen
is counted. A gain is what the build saves of the product of instructions and taken branches, as a
share of what the whole recording of the same program saves.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from verdict_programs import HELD_BACK, HERE, PROGRAMS, Program, make_inputs, unpack
from which_profile import BOLT, CLANG, LBR2PGO, Bench, call

from lbr2pgo.analyses.quality_verdict import Grade
from lbr2pgo.cli import main as main_of_lbr2pgo
from lbr2pgo.pgo.measure import Candidate, measure
from lbr2pgo.pgo.results import share_saved

WHOLE = "all samples"
FORMS = {"clang": "llvm", "BOLT": "fdata"}
"""What each tool is given."""
ORDER = [grade.value for grade in Grade]


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile, of what it was recorded, and for what it is used."""

    name: str
    recording: Path
    recorded: Path
    edited: int = 0
    """One line in so many of the sources to be built is followed by an empty one; 0: none."""

    def file(self, form: str) -> Path:
        """Where it is written, made when it is asked for the first time."""
        out = self.recording.with_suffix(f".{form}")
        if not out.exists():
            told("convert", self.recording, "--binary", self.recorded, f"--{form}", out, "--force")
        return out


@dataclass(frozen=True, slots=True)
class Row:
    """What was said of a profile, and what it gained."""

    program: str
    profile: str
    tool: str
    said: dict[str, dict[str, object]]
    """What `check` says of the recording, of the written profile, and of that against a recording
    of the judged run: its JSON, or nothing where it refuses."""
    cost: float
    """Instructions times taken branches of the build, those of the plain one as 1."""

    def verdict(self, of: str) -> str | None:
        """In words; None where there was nothing to be asked about."""
        found = self.said.get(of, {}).get("verdict")
        return None if found is None else str(found)


class Study:
    """One program: its builds, profiles and rows."""

    def __init__(self, program: Program, folder: Path) -> None:
        self._program, self._folder = program, folder / program.name
        self._folder.mkdir(exist_ok=True)
        self._bench = self._bench_of(self._folder, program.sources)
        self._known = self._folder / "costs.json"
        self._costs = json.loads(self._known.read_text()) if self._known.exists() else {}
        self.plain = self._built(self._bench, "plain")

    def _bench_of(self, folder: Path, patterns: Sequence[str]) -> Bench:
        program = self._program
        files = [
            str(file.resolve())
            for pattern in patterns
            for root in (Path(), HERE.parent)
            for file in sorted(root.glob(pattern))
            if not any(part in file.name for part in program.without)
        ]
        flags, *words = map(shlex.split, (program.flags, program.train, program.judged))
        return Bench(folder, files, ["-w", *flags], *words, program.period)

    def _built(self, bench: Bench, name: str, *flags: object) -> Path:
        out = bench.folder / name
        return out if out.exists() else bench.build(name, *CLANG, *map(str, flags))

    def _edited(self, each: int) -> Bench:
        """With sources of which one line in so many is followed by an empty one."""
        if not each:
            return self._bench
        folder = self._folder / f"edited{each}"
        sources = [edited(Path(file), folder, each) for file in self._bench.sources]
        around = {f"-I{Path(file).parent}" for file in self._bench.sources}
        flags = [*self._bench.flags, *sorted(around)]
        return replace(self._bench, folder=folder, sources=sources, flags=flags)

    def recording(self, binary: Path, words: str, name: str) -> Path:
        """Text of a recorded run."""
        out = self._folder / f"{name}.txt"
        if not out.exists():
            data = out.with_suffix(".data")
            how = ("--emulate", "-c", self._program.period, "-o", data)
            call(*LBR2PGO, "record", *how, "--", binary, *shlex.split(words))
            what = ("-F", "pid,ip,brstack", "--show-mmap-events")
            out.write_bytes(call("perf", "script", "-i", data, *what))
        return out

    def profiles(self, another: Study) -> Iterator[Profile]:
        """All of them, the best first."""
        program, whole = self._program, self.whole()
        yield whole
        for name, change in CHANGES.items():
            out = self._folder / f"{name}.txt"
            if not out.exists():
                out.write_text("".join(changed(whole.recording, change)))
            yield Profile(name, out, self.plain)
        if program.other:
            yield Profile(
                "other input", self.recording(self.plain, program.other, "other"), self.plain
            )
        less = self._built(self._bench, "less", "-O1")
        yield Profile("of -O1", self.recording(less, program.train, "less-optimized"), less)
        for each in (60, 8):
            yield replace(whole, name=f"every {each}th line moves the next ones", edited=each)
        if program.older:
            bench = self._bench_of(self._folder, program.older)
            older = self._built(bench, "older")
            yield Profile(
                "older version", self.recording(older, program.train, "older-version"), older
            )
        yield replace(another.whole(), name="another program's")

    def whole(self) -> Profile:
        """The recording that others are compared with."""
        return Profile(WHOLE, self.recording(self.plain, self._program.train, "all"), self.plain)

    def rows(self, another: Study) -> Iterator[Row]:
        """What each profile does for clang, and for BOLT where it is no build of edited sources."""
        for profile in self.profiles(another):
            bench = self._edited(profile.edited)
            target = self._built(bench, "plain")
            judged = self.recording(target, self._program.judged, f"judged{profile.edited or ''}")
            for tool, form in FORMS.items():
                if tool == "clang" or not profile.edited:
                    written = profile.file(form)
                    build = self._optimized(tool, bench, profile, written)
                    cost = self._cost(build) / self._cost(target)
                    said = {
                        "file": checked(written, target),
                        "file beside another recording": checked(
                            written, target, "--against", judged
                        ),
                    }
                    if profile.recorded == target:
                        said["recording"] = checked(profile.recording, target)
                    yield Row(self._program.name, profile.name, tool, said, cost)

    def _optimized(self, tool: str, bench: Bench, profile: Profile, written: Path) -> Path:
        name = f"{profile.name.replace(' ', '-')}.{tool}"
        if tool == "clang":
            return self._built(bench, name, f"-fprofile-sample-use={written}")
        out = self._folder / name
        if not out.exists():
            call("llvm-bolt-22", self.plain, "-o", out, "-data", written, *BOLT)
        return out

    def _cost(self, binary: Path) -> float:
        """Instructions times taken branches of the judged run."""
        key = str(binary.relative_to(self._folder))
        if key not in self._costs:
            command = str(binary), *self._bench.arguments
            (found,) = measure([Candidate(key, command)], 0)
            self._costs[key] = found.counted.totals.instructions * found.counted.totals.taken
            self._known.write_text(json.dumps(self._costs, indent=1))
        return float(self._costs[key])


def checked(profile: Path, binary: Path, *more: object) -> dict[str, object]:
    """What `check` says; nothing where it refuses to read the profile beside the binary."""
    said = told("check", profile, "--binary", binary, *more, "--format", "json")
    found: dict[str, object] = json.loads(said) if said else {}
    return found


def told(*words: object) -> str:
    """What a command of lbr2pgo prints; it runs in this process, as hundreds of them do."""
    out = io.StringIO()
    with redirect_stdout(out):
        main_of_lbr2pgo(list(map(str, words)))
    return out.getvalue()


def edited(source: Path, folder: Path, each: int) -> str:
    """A copy in which one line in so many that end a statement is followed by an empty one."""
    folder.mkdir(exist_ok=True)
    out = folder / source.name
    chance = random.Random(source.name)
    with out.open("w") as lines:
        for line in source.read_text(errors="surrogateescape").splitlines():
            is_moved = line.endswith(";") and chance.random() < 1 / each
            lines.write(f"{line}\n\n" if is_moved else f"{line}\n")
    return str(out)


Change = Callable[[Sequence[str], random.Random], Sequence[str]]
"""What a sample's words (number of the process, address, entries) become; none: it is left out."""


def one_in(number: int) -> Change:
    """Leaves out all other samples."""
    return lambda words, chance: words if chance.random() < 1 / number else ()


def stuck(words: Sequence[str], chance: random.Random) -> Sequence[str]:
    """In half of the samples the newest entry is an old one: the oldest in place of the newest."""
    return (*words[:2], words[-1], *words[3:]) if chance.random() < 0.5 else words


def losing(part: float) -> Change:
    """Some entries were not recorded."""
    return lambda words, chance: (*words[:2], *(e for e in words[2:] if chance.random() > part))


CHANGES: dict[str, Change] = {
    "1 in 10": one_in(10),
    "1 in 100": one_in(100),
    "1 in 1000": one_in(1000),
    "newest sticks": stuck,
    "half of entries lost": losing(0.5),
}
"""What is done to a whole recording."""


def changed(recording: Path, change: Change) -> Iterator[str]:
    """Lines of a recording after a change; those that tell what was mapped stay."""
    chance = random.Random(1)
    for line in recording.open():
        words = line.split()
        if "PERF_RECORD" in line or len(words) < 3:
            yield line
        elif kept := change(words, chance):
            yield " ".join(kept) + "\n"


def gained(rows: Sequence[Row]) -> Iterator[tuple[Row, float]]:
    """What each gains, as a share of what the whole recording does for the same tool.

    Left out is what gains less than a hundredth by it.
    """
    whole = {(row.program, row.tool): row.cost for row in rows if row.profile == WHOLE}
    for row in rows:
        share = share_saved(1, whole[row.program, row.tool], row.cost)
        if share is not None:
            yield row, share


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's, as many are of one class: equal values have their mean rank."""
    ranks = [
        np.searchsorted(np.sort(each), each) + np.searchsorted(np.sort(each), each, "right")
        for each in (one, other)
    ]
    return float(np.corrcoef(*ranks)[0, 1])


def correlation(rows: Sequence[tuple[Row, float]], of: str, programs: Collection[str]) -> str:
    """Of the classes with what was gained, over some programs."""
    pairs = [
        (-ORDER.index(verdict), share)
        for row, share in rows
        if row.program in programs and (verdict := row.verdict(of)) in ORDER
    ]
    return f"{rank_correlation(*zip(*pairs, strict=True)):.2f} ({len(pairs)})" if pairs else "-"


def class_rows(rows: Sequence[tuple[Row, float]], of: str) -> Iterator[str]:
    """How many builds each class has, and what they gained: the quartiles."""
    for verdict in ORDER:
        found = [share for row, share in rows if row.verdict(of) == verdict]
        if found:
            quarters = " | ".join(f"{each:.0%}" for each in np.quantile(found, (0.25, 0.5, 0.75)))
            yield f"| {verdict} | {len(found)} | {quarters} |"


def print_tables(rows: Sequence[tuple[Row, float]]) -> None:
    """What the builds gained by the verdict on their profiles, and whether that is in order."""
    every = [program.name for program in PROGRAMS]
    chosen = [name for name in every if name not in HELD_BACK]
    groups = {"all": every, "chosen by": chosen, "held back": HELD_BACK}
    for of in dict.fromkeys(of for row, _ in rows for of in row.said):
        print(f"\n| verdict on the {of} | builds | a quarter gains less | half | a quarter more |")
        print("| --- | --- | --- | --- | --- |", *class_rows(rows, of), sep="\n")
        told = (f"{name} {correlation(rows, of, programs)}" for name, programs in groups.items())
        print("rank correlation:", ", ".join(told))


def main() -> None:
    """Build, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", default=[program.name for program in PROGRAMS])
    args = parser.parse_args()
    folder = args.folder.resolve()
    os.chdir(folder / "sources")
    unpack()
    make_inputs()
    studies = [Study(program, folder) for program in PROGRAMS if program.name in args.only]
    rows = [
        row
        for study, another in zip(studies, [studies[-1], *studies[:-1]], strict=True)
        for row in study.rows(another)
    ]
    (folder / "rows.json").write_text(json.dumps([asdict(row) for row in rows], indent=1))
    print_tables(list(gained(rows)))


if __name__ == "__main__":
    main()
