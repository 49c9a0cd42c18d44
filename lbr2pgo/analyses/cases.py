"""What branches of one source line are told apart by: values of switches, and conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import ImageAddresses, PlacedAddresses, image_array
from lbr2pgo.support.distinct import distinct

_SHOWN = 6
"""Ranges of values of one target that are written."""


def case_values(
    evidence: Evidence, jumps: PlacedAddresses, targets: PlacedAddresses
) -> list[str | None]:
    """Of each jump (n,) through a table and its target, the values of the switch that lead there.

    None where the code does not tell them: other jumps, and tables that are not recognised.
    """
    from lbr2pgo.program.blocks.indirect_jumps import (
        switch_cases,  # with much that few reports need
    )

    known: dict[tuple[int, int], str] = {}
    for file, moved, own in _by_file(evidence, jumps):
        cases = switch_cases(file, own)
        values: dict[tuple[int, int], list[int]] = {}
        defaults: dict[int, int] = {}
        columns = (cases.jump, cases.target, cases.value, cases.default)
        for jump, target, value, default in zip(*(c.tolist() for c in columns), strict=True):
            values.setdefault((jump + moved, target + moved), []).append(value)
            defaults[jump + moved] = default + moved
        known |= {
            key: "default" if defaults[key[0]] == key[1] else written(each)
            for key, each in values.items()
        }
    pairs = zip(jumps.tolist(), targets.tolist(), strict=True)
    return [known.get(pair) for pair in pairs]


def written(values: Sequence[int]) -> str:
    """Values in words, neighbours as ranges.

    >>> written([65, 67, 66, 90])
    'case 65..67, 90'
    """
    pieces: list[tuple[int, int]] = []
    for value in sorted(set(values)):
        is_next = bool(pieces) and value == pieces[-1][1] + 1
        pieces.append((pieces.pop()[0], value) if is_next else (value, value))
    words = [f"{first}" if first == last else f"{first}..{last}" for first, last in pieces[:_SHOWN]]
    more = f", and {len(pieces) - _SHOWN} more" if len(pieces) > _SHOWN else ""
    return f"case {', '.join(words)}{more}"


def conditions(evidence: Evidence, branches: PlacedAddresses) -> list[str | None]:
    """For which outcome of the comparison before them conditional branches (n,) are taken.

    None where that is with no number, or further ahead.
    """
    from lbr2pgo.program.blocks.binary_context import idioms_of

    code = evidence.flow.instructions
    row = code.index_of(branches)
    follows = (row > 0) & (code.run[row - 1] == code.run[row])
    sizes = np.where(follows, code.size[row - 1], 0).tolist(), code.size[row].tolist()
    known: dict[tuple[bytes, bytes], str | None] = {(b"", b""): None}
    found: list[str | None] = []
    for address, before, size in zip(branches.tolist(), *sizes, strict=True):
        file, own = evidence.program.file_of(address)
        text = file.image.read(own - before, before + size) if before else b""
        pair = text[before:], text[:before]
        if pair not in known:  # code of templates is there many times
            known[pair] = idioms_of(file.image).condition(*pair)
        found.append(known[pair])
    return found


def _by_file(
    evidence: Evidence, addresses: PlacedAddresses
) -> Iterator[tuple[Program, int, ImageAddresses]]:
    """Files, what their addresses are moved by, and the different addresses in them."""
    files: dict[int, tuple[Program, list[int]]] = {}
    for address in distinct(addresses).tolist():
        file, own = evidence.program.file_of(address)
        files.setdefault(address - own, (file, []))[1].append(own)
    for moved, (file, places) in files.items():
        yield file, moved, image_array(places)
