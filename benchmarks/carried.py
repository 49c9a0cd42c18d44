"""What a profile is worth after it was carried to later releases, beside what clang makes of it.

``python benchmarks/carried.py FOLDER OLD NEW... --sources=PATTERN [--leave-out=NAME]...
[--flags=FLAGS] --train=WORDS [--arguments=WORDS] [--probes]``

OLD and NEW are source trees. OLD is built and recorded exactly; its profile goes into a build of
each NEW as it is, as clang's own matching of stale profiles makes it, and carried. Printed is the
share that each keeps of what a fresh profile gains: of instructions, and of taken branches. With
--probes profiles are of pseudo probes, and carried between builds. The folder keeps builds and
counts: what is there is not made again.
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

PROBES = ("-fpseudo-probe-for-profiling",)
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
            probes = PROBES if self.args.probes else ()
            words = [
                *CLANG,
                "-w",
                *probes,
                *flags,
                *sources,
                *shlex.split(self.args.flags),
                "-o",
                out,
            ]
            subprocess.run(["clang-22", *map(str, words)], cwd=self.tree, check=True)
        return out

    def profile(self) -> Path:
        """The exact profile of the plain build."""
        out = self.folder / f"{self.tree.name}.prof"
        if not out.exists():
            plain, counts = self.build("plain"), out.with_suffix(".exact")
            how = ("--emulate", "--exact", counts, "-c", PERIOD, "-o", out.with_suffix(".data"))
            call(*LBR2PGO, "record", *how, "--", plain, *shlex.split(self.args.train))
            call(*LBR2PGO, "convert", counts, "--binary", plain, "--llvm", out)
        return out

    def costs(self, name: str, *flags: object) -> tuple[int, int]:
        """Instructions and taken branches of a build."""
        kept = self.folder / f"{self.tree.name}.{name}.json"
        if not kept.exists():
            words = ("measure", "--runs", 0, "--format", "json", self.build(name, *flags), "--")
            kept.write_bytes(call(*LBR2PGO, *words, *shlex.split(self.args.arguments)))
        counts = json.loads(kept.read_text())["programs"][0]["counts"]
        return counts["instructions"], counts["taken"]


def kept_of_gain(old: Release, new: Release) -> list[str]:
    """Cells of a row."""
    carried = new.folder / f"{old.tree.name}-{new.tree.name}.prof"
    account = carried.with_suffix(".json")
    ends = [each.build("plain") if old.args.probes else each.tree for each in (old, new)]
    words = ("carry", old.profile(), "--from", ends[0], "--to", ends[1], "-o", carried, "--json",
             account)  # fmt: skip
    took = run([*map(str, (*LBR2PGO, *words))])
    plain, fresh = new.costs("plain"), new.costs("fresh", use(new.profile()))
    costs = (
        new.costs("stale", use(old.profile())),
        new.costs("salvaged", use(old.profile()), *SALVAGED),
        new.costs("carried", use(carried)),
    )
    shares = [
        " / ".join(f"{(p - c) / (p - f):.0%}" for p, f, c in zip(plain, fresh, cost, strict=True))
        for cost in costs
    ]
    counted = json.loads(account.read_text())["carried"]
    return [new.tree.name, *shares, f"{counted:.1%}", f"{took.cpu:.1f} s"]


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
    parser.add_argument("--probes", action="store_true", help="in place of lines")
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
