"""What ran in contexts that have names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lbr2pgo.model.context_counts import ContextBranches, ContextRuns
from lbr2pgo.profiles.llvm.contexts.columns import line_and_discriminator
from lbr2pgo.support.arrays import U64


@dataclass(frozen=True, slots=True)
class NamedContexts:
    """Counts by context; `node` is an index into the names, and rows may be alike."""

    names: tuple[bytes, ...]
    runs: ContextRuns
    branches: ContextBranches


def context_names(contexts: U64, functions: Sequence[str]) -> tuple[bytes, ...]:
    """What LLVM calls each of `ContextKeys.contexts` (n, 3); the first one has no name.

    >>> import numpy as np
    >>> from lbr2pgo.profiles.llvm.contexts.columns import location_of
    >>> call = location_of(np.array([3]), np.array([1]))[0]
    >>> context_names(np.array([[0, 0, 0], [0, 0, 0], [1, call, 1]], np.uint64), ["main", "f"])
    (b'', b'main', b'main:3.1 @ f')
    """
    line, discriminator = line_and_discriminator(contexts[:, 1])
    names = [""]
    columns = (contexts[:, 0], line, discriminator, contexts[:, 2])
    for caller, at, of, function in zip(*(c[1:].tolist() for c in columns), strict=True):
        place = f":{at}.{of} @ " if of else f":{at} @ "
        names.append((names[caller] + place if caller else "") + functions[function])
    return tuple(name.encode(errors="surrogateescape") for name in names)
