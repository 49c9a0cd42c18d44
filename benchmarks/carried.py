"""What a profile is worth carried to later releases, beside what clang or BOLT make of it.

``python benchmarks/carried.py FOLDER OLD NEW... --sources=PATTERN [--leave-out=NAME]...
[--flags=FLAGS] --train=WORDS [--arguments=WORDS] [--profile=lines|probes|fdata]``

OLD and NEW are source trees. OLD is built and recorded exactly; its profile goes into a build of
each NEW as it is, as clang's own matching of stale profiles makes it, and carried. Printed is the
share that each keeps of what a fresh profile gains: of instructions, and of taken branches. With
--profile they are of pseudo probes, or fdata for llvm-bolt, which matches its own YAML. The folder
keeps builds and counts: what is there is not made again.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from measure import run
from which_profile import CLANG, LBR2PGO, call

ASKED = {"probes": ("-fpseudo-probe-for-profiling",), "fdata": ("-Wl,--emit-relocs",)}
"""Flags of all builds, by the kind of profile."""
SALVAGED = ("-mllvm", "-salvage-stale-profile", "-mllvm", "-salvage-unused-profile")
WAYS = ("stale", "salvaged", "carried")
PERIOD = 100_003
"""Taken branches from sample to sample: of the samples nothing is used, but of the exact counts."""


@dataclass(frozen=True, slots=True)
class Release:
    """One source tree, and what is built of it."""

    folder: Path
    tree: Path
    args: argparse.Namespace

    def build(self, name: str, *flags: object) -> Path:
        """A program, compiled in its tree: its name, which its files begin with, is unique."""
        out = self.folder / f"{self.tree.name}.{name}"
        if not out.exists():
            sources = sorted(
                path.relative_to(self.tree)
                for path in self.tree.glob(self.args.sources)
                if path.name not in self.args.leave_out
            )
            asked = ASKED.get(self.args.profile, ())
            words = [
                *CLANG,
                "-w",
                *asked,
                *flags,
                *sources,
                *shlex.split(self.args.flags),
                "-o",
                out,
            ]
            subprocess.run(["clang-22", *map(str, words)], cwd=self.tree, check=True)
        return out

    def bolted(self, name: str, *profile: object) -> Path:
        """The plain build, laid out by llvm-bolt."""
        out = self.folder / f"{self.tree.name}.{name}"
        if not out.exists():
            how = ("--max-stale", 1, *profile, "-o", out)
            call(*LBR2PGO, "bolt", self.build("plain"), *how)
        return out

    def profile(self, option: str, suffix: str) -> Path:
        """The exact profile of the plain build, as an option of `convert` writes it."""
        out = self.folder / f"{self.tree.name}.{suffix}"
        plain, counts = self.build("plain"), self.folder / f"{self.tree.name}.exact"
        if not counts.exists():
            how = ("--emulate", "--exact", counts, "-c", PERIOD, "-o", counts.with_suffix(".data"))
            call(*LBR2PGO, "record", *how, "--", plain, *shlex.split(self.args.train))
        if not out.exists():
            call(*LBR2PGO, "convert", counts, "--binary", plain, option, out)
        return out

    def costs(self, program: Path) -> tuple[int, int]:
        """Instructions and taken branches of a build."""
        kept = program.with_name(f"{program.name}.json")
        if not kept.exists():
            words = ("measure", "--runs", 0, "--format", "json", program, "--")
            kept.write_bytes(call(*LBR2PGO, *words, *shlex.split(self.args.arguments)))
        counts = json.loads(kept.read_text())["programs"][0]["counts"]
        return counts["instructions"], counts["taken"]


def carry(
    old: Release, new: Release, profile: Path, ends: tuple[Path, Path]
) -> tuple[Path, list[str]]:
    """A profile carried, with how much that is, and its cost."""
    out = new.folder / f"{old.tree.name}-{new.tree.name}{profile.suffix}"
    account = out.with_suffix(".json")
    words = ("carry", profile, "--from", ends[0], "--to", ends[1], "-o", out, "--json", account)
    took = run([*map(str, (*LBR2PGO, *words))])
    return out, [f"{json.loads(account.read_text())['carried']:.1%}", f"{took.cpu:.1f} s"]


def kept_by_clang(old: Release, new: Release) -> tuple[list[Path], list[str]]:
    """Builds with a fresh profile, one as it is, one that clang matched, and one carried."""
    was, now = (each.profile("--llvm", "prof") for each in (old, new))
    ends = (old.tree, new.tree)
    if old.args.profile == "probes":
        ends = (old.build("plain"), new.build("plain"))
    carried, told = carry(old, new, was, ends)
    builds = [
        new.build("fresh", use(now)),
        new.build("stale", use(was)),
        new.build("salvaged", use(was), *SALVAGED),
        new.build("carried", use(carried)),
    ]
    return builds, told


def kept_by_bolt(old: Release, new: Release) -> tuple[list[Path], list[str]]:
    """The same with fdata and llvm-bolt."""
    was, now = (each.profile("--fdata", "fdata") for each in (old, new))
    carried, told = carry(old, new, was, (old.build("plain"), new.build("plain")))
    builds = [
        new.bolted("fresh", "--fdata", now),
        new.bolted("stale", "--fdata", was),
        new.bolted("salvaged", "--yaml", old.profile("--bolt-yaml", "yaml")),
        new.bolted("carried", "--fdata", carried),
    ]
    return builds, told


def kept_of_gain(old: Release, new: Release) -> list[str]:
    """Cells of a row."""
    (fresh, *builds), told = (kept_by_bolt if old.args.profile == "fdata" else kept_by_clang)(
        old, new
    )
    plain, best = new.costs(new.build("plain")), new.costs(fresh)
    shares = [
        " / ".join(f"{(p - c) / (p - f):.0%}" for p, f, c in zip(plain, best, cost, strict=True))
        for cost in map(new.costs, builds)
    ]
    return [new.tree.name, *shares, *told]


def use(profile: Path) -> str:
    """The flag of clang."""
    return f"-fprofile-sample-use={profile}"


def main() -> None:
    """Build, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path, nargs="+")
    parser.add_argument("--sources", default="*.c", help="of a tree, what is compiled")
    parser.add_argument("--leave-out", action="append", default=[], metavar="NAME")
    parser.add_argument("--flags", default="", help="of every build")
    parser.add_argument("--train", default="", help="arguments of the run to learn from")
    parser.add_argument("--arguments", help="of the run to measure (default: the same)")
    parser.add_argument("--profile", choices=("lines", *ASKED), default="lines")
    args = parser.parse_args()
    args.arguments = args.train if args.arguments is None else args.arguments
    args.folder.mkdir(parents=True, exist_ok=True)
    folder = args.folder.resolve()
    old, *later = (Release(folder, tree.resolve(), args) for tree in (args.old, *args.new))
    print(f"| {old.tree.name} to | {' | '.join(WAYS)} | counts carried | CPU |", file=sys.stdout)
    print("| --- " * 6 + "|")
    for new in later:
        print(f"| {' | '.join(kept_of_gain(old, new))} |", flush=True)


if __name__ == "__main__":
    main()
