"""Whether two builds have the same blocks, so that a layout of the one's means the other's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbr2pgo.profiles.linker.linker_names import names_at
from lbr2pgo.program.block_map import open_block_map
from lbr2pgo.program.program import Program


@dataclass(frozen=True, slots=True)
class BlocksCompared:
    """Functions that two builds have."""

    functions: int
    differing: tuple[str, ...]
    """Those whose blocks have other numbers in the second build."""


def compare_blocks(recorded: Program, built: Program) -> BlocksCompared:
    """Compare the block maps of two builds, function by function of one name.

    Raises InputError where one has no map.
    """
    before, after = _numbers(recorded), _numbers(built)
    common = before.keys() & after.keys()
    differing = sorted(name for name in common if before[name] != after[name])
    return BlocksCompared(len(common), tuple(differing))


def _numbers(program: Program) -> dict[str, bytes]:
    """The numbers of each function's blocks, in their order."""
    blocks = open_block_map(program.image)
    order = np.lexsort((blocks.identity, blocks.function))
    bounds = np.searchsorted(blocks.function[order], np.arange(len(blocks.entry) + 1))
    identity = blocks.identity[order]
    names, _ = names_at(blocks.entry.tolist(), program.symbols)
    return {
        own[0]: identity[bounds[i] : bounds[i + 1]].tobytes() for i, own in enumerate(names) if own
    }
