"""Sample profiles of one recording: our own, and llvm-profgen's."""

from __future__ import annotations

import subprocess
from pathlib import Path

from builders.compat import llvm_profgen_if
from builders.fixtures import Corpus, Tool

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.model import waterfall
from lbr2pgo.profiles.registry import output, steps

CASES = (
    "artificial-branch", "func-split", "inline-noprobe2", "invalid-range", "multi-load-segs",
    "noinline-cs-noprobe", "noinline-cs-pseudoprobe", "noprobe", "recursion-compression-noprobe",
    "unique-linkage-name-dwarf",
)  # fmt: skip
"""Recordings of llvm-profgen's own tests in the corpus, with what it makes of them."""
BINARIES = {"artificial-branch": "inline-noprobe2", "invalid-range": "noinline-cs-pseudoprobe"}
"""Programs that are not called as their recording is."""
DIFFERENT = ("invalid-range", "noinline-cs-noprobe")
"""Of which we make something else without `--compat llvm-profgen`: see docs/differences.md."""


def binary_of(corpus: Corpus, case: str) -> Path:
    """The program of a case."""
    return corpus(f"llvm-profgen/{BINARIES.get(case, case)}.perfbin")


def converted(
    where: Path, profile: Path, binary: Path, *, compat: bool = False, strict: bool = False,
    **options: object,
) -> str:  # fmt: skip
    """Our text profile, without calling contexts unless asked for; the waterfall must add up."""
    out = where / "ours.prof"
    made = (output("llvm", out, **{"contexts": "off", **options}),)
    done = convert(
        ConvertOptions(
            (profile,), binary, outputs=made, compat=llvm_profgen_if(compat), strict=strict
        )
    )
    waterfall.check(done.tallies, steps())
    return out.read_text()


def profgen(tool: Tool, where: Path, profile: Path, binary: Path, *words: str) -> str:
    """The text profile of llvm-profgen, without calling contexts."""
    return profgen_of_contexts(tool, where, profile, binary, "--ignore-stack-samples", *words)


def profgen_of_contexts(tool: Tool, where: Path, profile: Path, binary: Path, *words: str) -> str:
    """The same with calling contexts, if there are call stacks."""
    out = where / "profgen.prof"
    kind = "perfscript" if profile.suffix == ".perfscript" else "perfdata"
    done = subprocess.run(
        [tool("llvm-profgen-22"), "--format=text", f"--{kind}={profile}",
         f"--binary={binary}", f"--output={out}", *words], capture_output=True, text=True,
    )  # fmt: skip
    assert out.exists(), done.stderr
    return out.read_text()
