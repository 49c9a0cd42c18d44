"""Sample profiles of contexts: our own, and llvm-profgen's."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from builders.compat import llvm_profgen_if
from builders.hybrid import read_hybrid
from builders.unwound import unwound

from lbr2pgo.counting.place import ImageFacts
from lbr2pgo.counting.sample_reading import SampleReading
from lbr2pgo.model.context_counts import ContextCounts
from lbr2pgo.profiles.llvm import text_table
from lbr2pgo.profiles.llvm.contexts._preinliner import SHOULD_BE_INLINED, WAS_INLINED
from lbr2pgo.profiles.llvm.contexts.context_profile import ContextProfile
from lbr2pgo.profiles.llvm.contexts.keys import ContextShape
from lbr2pgo.profiles.llvm.contexts.line_contexts import LineContexts
from lbr2pgo.profiles.llvm.contexts.preinliner import preinlined
from lbr2pgo.profiles.llvm.contexts.probe_contexts import ProbeContexts
from lbr2pgo.profiles.llvm.profile_table import Body, CallTargets, Contexts, ProfileTable
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.sources import open_source

HYBRID = ("noinline-cs-noprobe", "noinline-cs-pseudoprobe", "recursion-compression-noprobe",
          "recursion-compression-pseudoprobe", "func-split", "multi-load-segs",
          "unique-linkage-name-dwarf")  # fmt: skip
"""Recordings with call stacks in the corpus."""
LINES = ("--use-dwarf-correlation",)
"""By source lines, even where there are probes."""
FULL = ("--gen-cs-nested-profile=0", "--csspgo-preinliner=0", "--profile-summary-hot-count=0")
"""All contexts, as they are."""
PREINLINED = ("--gen-cs-nested-profile=0",)


def line_contexts(binary: Path, recording: Path, *, as_llvm: bool = True) -> LineContexts:
    """What ran in which context."""
    program = Program.open(binary)
    counts = _unwound(program, recording, as_llvm=as_llvm)
    return LineContexts(counts, program, DebugInfo.open(program.image), llvm_profgen_if(as_llvm))


def _unwound(program: Program, recording: Path, *, as_llvm: bool) -> ContextCounts:
    spaces = SampleReading(open_source(recording), ImageFacts(program.image.layout)).spaces
    return unwound(program, read_hybrid(recording), as_llvm=as_llvm, spaces=spaces)


def probe_contexts(binary: Path, recording: Path, *, as_llvm: bool = True) -> ProbeContexts:
    """The same by pseudo probe."""
    program = Program.open(binary)
    counts = _unwound(program, recording, as_llvm=as_llvm)
    return ProbeContexts(counts, program, DebugInfo.open(program.image), llvm_profgen_if(as_llvm))


def full(
    contexts: LineContexts | ProbeContexts, shape: ContextShape | None = None
) -> ContextProfile:
    """All contexts, as they are."""
    return contexts.profile(shape)


def inlined(contexts: LineContexts | ProbeContexts, *, as_llvm: bool = True) -> ContextProfile:
    """Those that are to be inlined, and the functions by themselves."""
    return preinlined(contexts.profile(), contexts.sizes(), llvm_profgen_if(as_llvm))


def as_text(profile: ContextProfile | ProfileTable) -> str:
    """Its file."""
    out = io.BytesIO()
    text_table.write(profile, out)
    return out.getvalue().decode()


def without_was_inlined(profile: str) -> str:
    """Of contexts that were inlined at times, the first one that llvm-profgen's hash table shows
    decides; we say that they were."""

    def cleared(line: re.Match[str]) -> str:
        kept = int(line[2]) & ~WAS_INLINED
        return f"{line[1]}{kept}\n" if kept else ""

    return re.sub(r"(?m)^( +!Attributes: )(\d+)\n", cleared, profile)


def context_profile(
    parents: list[int], *, has_samples: list[bool], was_inlined: Sequence[int] = ()
) -> ContextProfile:
    """Functions f0, f1 … with 10 samples each, called at line 1 of their parents 3 times.

    All are to be inlined, some of them were inlined in the recorded program.
    """
    size, called = len(parents), [p for p in parents if p >= 0]
    number, ones = np.arange(size), np.ones(size, np.int64)
    parent = np.array(parents, np.int64)
    callees = np.flatnonzero(parent >= 0)
    samples = np.array(has_samples, np.bool_)
    return ContextProfile(
        ProfileTable(
            tuple(f"f{i}" for i in range(size)),
            Contexts(
                parent, np.where(parent >= 0, 1, 0), np.zeros(size, np.int64), number,
                np.full(size, 10, np.uint64), np.full(size, 3, np.uint64),
            ),
            Body(number, ones, np.zeros(size, np.int64), np.full(size, 4, np.uint64)),
            CallTargets(np.array(called, np.int64), callees, np.full(len(called), 3, np.uint64)),
        ),
        samples,
        np.where(np.isin(number, was_inlined), WAS_INLINED, 0).astype(np.uint8) | SHOULD_BE_INLINED,
    )  # fmt: skip
