"""The two files of Propeller: clusters of blocks for the compiler, symbols for the linker.

Version 1 of the clusters::

    v1
    # a comment
    m file.c                  of this source file only: other functions share the names
    f name alias              a function, by all its names
    # 7 blocks                a comment for us: how many it has in the recorded build
    p 2 4                     block 4 is cloned for block 2
    c 0 2 4.1 4               blocks that stand together, by their numbers; the first is the entry
    g 0:9,2:8,3:1 2:8,4.1:8   how often blocks ran, and led to others (LLVM 22 on)
    h 0:9f3c 2:77e1           hashes of blocks, but not of clones (LLVM 22 on)

and version 0, which LLVM reads up to 16 and beyond::

    !name/alias M=file.c
    !!0 2 4

Blocks that no cluster holds go to the symbol `name.cold`. LLVM:
lib/CodeGen/BasicBlockSectionsProfileReader.cpp.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

import numpy as np

from lbr2pgo.profiles.propeller.block_flow import BlockFlow
from lbr2pgo.profiles.propeller.block_layout import Layout
from lbr2pgo.profiles.propeller.cluster_names import Named
from lbr2pgo.profiles.propeller.path_cloning import ClonedFunction, Node
from lbr2pgo.program.block_map import BlockMap
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.output import write_pieces


@dataclass(frozen=True, slots=True)
class Cluster:
    """The hot blocks of a function."""

    names: tuple[str, ...]
    blocks: tuple[str, ...]
    """Their numbers; a clone's has its own behind a dot."""
    has_cold: bool
    module: str = ""
    """The source file, where functions of other ones share its names."""
    counted: tuple[str, ...] = ()
    """Lines that say more of the blocks, for version 1."""
    total: int | None = None
    """How many blocks the function has, hot or not."""
    paths: tuple[str, ...] = ()
    """Numbers of a block, and of those that are cloned behind it."""


def clusters(
    layout: Layout,
    blocks: BlockMap,
    names: Sequence[Named],
    counted: BlockFlow | None = None,
    clones: Mapping[int, ClonedFunction] | None = None,
) -> list[Cluster]:
    """Functions that have names, in the order of the layout; `names` are those of each.

    With lines of how often blocks ran, where they led and their hashes, if `counted` is given, and
    with `clones`, by places in the layout.
    """
    found, total = [], np.bincount(blocks.function)
    for i, own in enumerate(names):
        if own.names:
            rows = layout.blocks[layout.offsets[i] : layout.offsets[i + 1]]
            has_cold, of_all = bool(layout.has_cold[i]), int(total[layout.function[i]])
            laid = (clones or {}).get(i) or _without_clones(rows, counted)
            lines = (_graph(laid, blocks), *_hashes(rows, blocks)) if counted else ()
            numbers = tuple(_number(blocks, node) for node in laid.order)
            told = (blocks.identity[list(path)].tolist() for path in laid.paths)
            paths = tuple(" ".join(map(str, path)) for path in told)
            cluster = Cluster(own.names, numbers, has_cold, own.module, lines, of_all, paths)
            found.append(cluster)
    return found


def _without_clones(rows: I64, flow: BlockFlow | None) -> ClonedFunction:
    """Blocks of one function as they are, with counts if there is a flow."""
    order = tuple((row, 0) for row in rows.tolist())
    if flow is None:
        return ClonedFunction((), order, {}, {})
    count = dict(zip(order, flow.count[rows].tolist(), strict=True))
    first, past = (np.searchsorted(flow.edges.source, rows, side) for side in ("left", "right"))
    edges = {}
    for node, i, j in zip(order, first.tolist(), past.tolist(), strict=True):
        leads = zip(flow.edges.target[i:j].tolist(), flow.edges.count[i:j].tolist(), strict=True)
        edges[node] = {(target, 0): times for target, times in leads}
    return ClonedFunction((), order, count, edges)


def _number(blocks: BlockMap, node: Node) -> str:
    row, copy = node
    return f"{blocks.identity[row]}.{copy}" if copy else str(blocks.identity[row])


def _graph(laid: ClonedFunction, blocks: BlockMap) -> str:
    """The `g` line of one function."""
    nodes = []
    for node in laid.order:
        counts = [(node, laid.count[node]), *laid.edges[node].items()]
        nodes.append(",".join(f"{_number(blocks, each)}:{times}" for each, times in counts))
    return f"g {' '.join(nodes)}"


def _hashes(rows: I64, blocks: BlockMap) -> tuple[str, ...]:
    """The `h` line of blocks of one function, if they have hashes.

    A clone can have none (LLVM: llvm/include/llvm/CodeGen/BasicBlockSectionsProfileReader.h,
    CFGProfile): its count goes with its block's.
    """
    hashed = rows[blocks.hash[rows] != 0]
    pairs = zip(blocks.identity[hashed].tolist(), blocks.hash[hashed].tolist(), strict=True)
    hashes = [f"{block}:{value:x}" for block, value in pairs]
    return (f"h {' '.join(hashes)}",) if hashes else ()


def write_clusters(
    found: Iterable[Cluster], path: Path, version: int, comments: Sequence[str] = ()
) -> None:
    """Write what the compiler reads."""
    lines = _version_1 if version else _version_0
    head = ["v1"] if version else []
    _write([*head, *(f"# {comment}" for comment in comments), *lines(found)], path)


def _version_1(found: Iterable[Cluster]) -> Iterator[str]:
    for each in found:
        if each.module:
            yield f"m {each.module}"
        yield f"f {' '.join(each.names)}"
        yield from _total(each)
        yield from (f"p {path}" for path in each.paths)
        yield f"c {' '.join(each.blocks)}"
        yield from each.counted


def _version_0(found: Iterable[Cluster]) -> Iterator[str]:
    for each in found:
        module = each.module and f" M={each.module}"
        yield f"!{'/'.join(each.names)}{module}"
        yield from _total(each)
        yield f"!!{' '.join(each.blocks)}"


def _total(cluster: Cluster) -> tuple[str, ...]:
    return () if cluster.total is None else (f"# {cluster.total} blocks",)


def write_order(names: Sequence[Sequence[str]], has_cold: Sequence[bool], path: Path) -> None:
    """Write what the linker reads: hot parts, then the cold ones, by all names of each function."""
    hot = (name for own in names for name in own)
    cold = (f"{name}.cold" for own in compress(names, has_cold) for name in own)
    _write(dict.fromkeys((*hot, *cold)), path)


def _write(lines: Iterable[str], path: Path) -> None:
    write_pieces(path, (os.fsencode(line) + b"\n" for line in lines))
