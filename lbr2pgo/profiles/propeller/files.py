"""The two files of Propeller: clusters of blocks for the compiler, symbols for the linker.

Version 1 of the clusters::

    v1
    # a comment
    f name alias              a function, by all its names
    c 0 2 4                   blocks that stand together, by their numbers; the first is the entry

and version 0, which LLVM reads up to 16 and beyond::

    !name/alias
    !!0 2 4

Blocks that no cluster holds go to the symbol `name.cold`. LLVM:
lib/CodeGen/BasicBlockSectionsProfileReader.cpp.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lbr2pgo.profiles.propeller.layout import Layout
from lbr2pgo.program.block_map import BlockMap
from lbr2pgo.support.output import write_pieces


@dataclass(frozen=True, slots=True)
class Cluster:
    """The hot blocks of a function."""

    names: tuple[str, ...]
    blocks: tuple[int, ...]
    has_cold: bool


def clusters(layout: Layout, blocks: BlockMap, names: Sequence[Sequence[str]]) -> list[Cluster]:
    """Functions that have names, in the order of the layout; `names` are those of each."""
    identity = blocks.identity[layout.blocks].tolist()
    bounds = layout.offsets.tolist()
    return [
        Cluster(tuple(own), tuple(identity[bounds[i] : bounds[i + 1]]), bool(layout.has_cold[i]))
        for i, own in enumerate(names)
        if own
    ]


def write_clusters(
    found: Iterable[Cluster], path: Path, version: int, comments: Sequence[str] = ()
) -> None:
    """Write what the compiler reads."""
    lines = _version_1 if version else _version_0
    head = ["v1"] if version else []
    _write([*head, *(f"# {comment}" for comment in comments), *lines(found)], path)


def _version_1(found: Iterable[Cluster]) -> Iterator[str]:
    for each in found:
        yield f"f {' '.join(each.names)}"
        yield f"c {' '.join(map(str, each.blocks))}"


def _version_0(found: Iterable[Cluster]) -> Iterator[str]:
    for each in found:
        yield f"!{'/'.join(each.names)}"
        yield f"!!{' '.join(map(str, each.blocks))}"


def write_order(found: Sequence[Cluster], path: Path) -> None:
    """Write what the linker reads: hot parts, then the cold ones, by all names."""
    hot = (name for each in found for name in each.names)
    cold = (f"{name}.cold" for each in found if each.has_cold for name in each.names)
    _write([*hot, *cold], path)


def _write(lines: Iterable[str], path: Path) -> None:
    write_pieces(path, (os.fsencode(line) + b"\n" for line in lines))
