"""How many samples a profile has for each location of its hot functions, and whether they do."""

from __future__ import annotations

import numpy as np

from lbr2pgo.profiles.llvm.profile_table import ProfileTable
from lbr2pgo.support.arrays import F64, I64, U64
from lbr2pgo.support.distinct import roots_of
from lbr2pgo.support.sums import LARGEST, add_at, exact_sum

HOT = 990_000
"""Hot is what makes up this share of all counts, in millionths (LLVM's default cutoff)."""
_SCALE = 1_000_000
ENOUGH = 50.0
"""Samples a location that llvm-profgen asks for (LLVM: tools/llvm-profgen/ProfileGenerator.cpp,
the default of --profile-density-threshold)."""


def density(count: U64, locations: I64) -> float:
    """Samples per location in the sparsest function that is hot; 0 if there is none.

    count, locations (n,): of each function, with all that is inlined into it. Functions are taken
    densest first until they hold `HOT` of all counts (ProfileGenerator.cpp, calculateDensity).
    """
    kept = locations > 0
    count, each = count[kept], count[kept] / locations[kept]
    order = np.lexsort((count, -each))
    # LLVM computes the share in single precision.
    total = np.uint64(min(exact_sum(count), LARGEST))
    wanted = float(np.float32(total) * np.float32(HOT) / np.float32(_SCALE))
    reached = np.cumsum(count[order], dtype=np.float64) - count[order]
    taken: F64 = each[order][reached < wanted]
    return float(taken[-1]) if len(taken) else 0.0


def table_density(table: ProfileTable) -> float:
    """The `density` of a profile in columns."""
    parent, size = table.contexts.parent, len(table.contexts)
    top = roots_of(np.where(parent < 0, np.arange(size), parent))
    function = top[table.body.context]
    count = np.zeros(size, np.uint64)
    add_at(count, function, table.body.count)
    return density(count, np.bincount(function, minlength=size))


def verdict(found: float) -> str:
    """A density in words, with what to do where it is too small."""
    asked = f"llvm-profgen asks for {ENOUGH:.0f}"
    says = f"{found:.1f} samples for each location of hot functions ({asked})"
    if found >= ENOUGH:
        return f"{says}: enough"
    if not found:
        return f"{says}: record longer, or with a shorter period"
    more = ENOUGH / found
    return f"{says}: {more:.1f} times more would do better; record longer, or with a shorter period"
