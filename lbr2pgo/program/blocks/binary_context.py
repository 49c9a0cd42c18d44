"""BOLT's view of the functions that a profile names (BOLT: BinaryContext.h).

They are found, disassembled and cut into blocks; and some are not simple, which is BOLT's word for
functions whose blocks it can't tell for sure.
"""

from __future__ import annotations

import re

import numpy as np

from lbr2pgo.program.blocks import x86_idioms
from lbr2pgo.program.blocks.basic_blocks import BasicBlocks, build_blocks, find_labels
from lbr2pgo.program.blocks.binary_functions import BinaryFunctions, discover
from lbr2pgo.program.blocks.disassembly import Disassembly, disassembled
from lbr2pgo.program.blocks.idioms import Idioms
from lbr2pgo.program.blocks.references import possible_callers, read_references, without_data
from lbr2pgo.program.code.decode import decode
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.intervals import last_at_or_below
from lbr2pgo.support.tables import same_length, seal
from lbr2pgo.support.threads import both

IDIOMS = {"x86-64": x86_idioms.X86_64, "aarch64": Idioms(), "riscv64": Idioms()}
"""By name of the architecture; `Idioms()` where BOLT looks for none."""


@dataclass(frozen=True, slots=True)
class BinaryContext:
    """Functions of an image; some of them disassembled and cut into blocks."""

    functions: BinaryFunctions
    code: Disassembly
    blocks: BasicBlocks
    is_simple: Bools
    """(n,): whether perf2bolt takes runs from a function."""

    def __post_init__(self) -> None:
        seal(self)
        same_length(self, "is_simple", rows=len(self.functions))


def analyze(program: Program, addresses: PlacedAddresses, *, keep_all: bool) -> BinaryContext:
    """Disassemble the functions that hold these addresses, with their fragments and parents.

    With `keep_all`, all functions count as simple.
    """
    image, idioms = program.image, idioms_of(program.image)
    functions, references = both(
        lambda: discover(image, program.symbols), lambda: read_references(image)
    )
    table = program.instructions_for(functions.start[_chosen(functions, addresses)])
    code = disassembled(image, functions, table, idioms.normalized)
    others = possible_callers(image, code, idioms)
    other_table = decode(image, functions.ranges.take(others))
    callers = disassembled(image, functions, other_table, idioms.normalized)
    labels = find_labels(image, code, without_data(callers, code), references, idioms)
    simple = np.ones(len(functions), np.bool_)
    if not keep_all:
        simple = find_simple(image, code, idioms, has_relocations=references.present)
    return BinaryContext(functions, code, build_blocks(code, labels), simple)


def idioms_of(image: Image) -> Idioms:
    """What BOLT looks for in code of the image's architecture."""
    return IDIOMS.get(image.architecture.name, Idioms())


def _chosen(functions: BinaryFunctions, addresses: PlacedAddresses) -> Bools:
    """(n,): functions that hold one of the addresses, with their fragments and parents."""
    related = np.zeros(len(functions), np.bool_)
    found = functions.containing(addresses)
    related[functions.parent[found[found >= 0]]] = True
    return related[functions.parent] & ~functions.is_pseudo


def find_simple(image: Image, code: Disassembly, idioms: Idioms, *, has_relocations: bool) -> Bools:
    """(n,): whether perf2bolt takes runs from each function; those not disassembled count, too.

    Not simple are functions whose borders are in doubt, that hold bytes which are no code, or that
    have instructions that BOLT can't move. In a file without relocations all functions that are
    split are among them, in one with relocations those with something else than padding behind
    them (BOLT: BinaryFunction.cpp, disassemble; BinaryContext.cpp, registerFragment and
    hasValidCodePadding).
    """
    functions = code.functions
    lost = functions.is_contradicted | _has_gaps(image, code)
    lost[code.function[idioms.unsupported(code)]] = True
    if not has_relocations:
        members = np.bincount(functions.parent, minlength=len(functions))
        lost |= members[functions.parent] > 1
    elif idioms.padding is not None:
        lost |= _has_strange_padding(image, code, idioms.padding)
    return ~lost


def _has_strange_padding(image: Image, code: Disassembly, usual: re.Pattern[bytes]) -> Bools:
    """Functions with bytes behind them that are neither padding nor skipped by a jump."""
    functions = code.functions
    strange = np.zeros(len(functions), np.bool_)
    for function in distinct(code.function).tolist():
        end, size = int(functions.end[function]), int(functions.size[function])
        padding = image.read(end, int(functions.max_size[function]) - size)
        strange[function] = usual.fullmatch(padding) is None
    return strange


def _has_gaps(image: Image, code: Disassembly) -> Bools:
    """Functions not filled with instructions; zeros at the end are padding."""
    functions = code.functions
    covered = np.bincount(code.function, weights=code.size, minlength=len(functions))
    gaps = (covered > 0) & (covered < functions.size)
    rows = np.flatnonzero(gaps)
    lasts = last_at_or_below(code.function, rows)
    for function, last in zip(rows.tolist(), lasts.tolist(), strict=True):
        behind = int(code.address[last]) + int(code.size[last])
        rest = image.read(behind, int(functions.end[function]) - behind)
        is_tail = int(covered[function]) + len(rest) == int(functions.size[function])
        gaps[function] = bool(any(rest)) or not is_tail
    return gaps
