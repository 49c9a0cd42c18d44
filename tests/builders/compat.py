"""The rules of each tool, as `--compat` asks for them."""

from __future__ import annotations

from lbr2pgo.model.compat import LLVM_PROFGEN, OURS, PERF2BOLT, Compat

AS_LLVM_PROFGEN = Compat(frozenset({LLVM_PROFGEN}))
AS_PERF2BOLT = Compat(frozenset({PERF2BOLT}))


def llvm_profgen_if(wanted: bool) -> Compat:
    """llvm-profgen's rules or ours."""
    return AS_LLVM_PROFGEN if wanted else OURS
