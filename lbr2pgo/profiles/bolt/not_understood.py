"""Functions that BOLT finds but does not understand, and for which it has no blocks."""

from __future__ import annotations

import re

import numpy as np

from lbr2pgo.profiles.bolt.functions import BoltFunctions
from lbr2pgo.profiles.bolt.lines import Lines, uses_short_loop
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.arrays import Bools

# `int3`, then any of: `nop` in its many lengths, zeros, jumps ahead (Intel SDM vol. 2, NOP).
_PADDING = re.compile(
    rb"\xcc*(?:[\x66\x2e\x48]*(?:\x90|\x0f\x1f(?:\x00|\x40.|\x44..|\x80.{4}|\x84.{5}))"
    rb"|\x00|\xeb[\x00-\x7f]|\xe9..[\x00-\xff]\x00)*",
    re.DOTALL,
)


def given_up(
    image: Image, functions: BoltFunctions, lines: Lines, *, has_relocations: bool
) -> Bools:
    """(n,): of the functions in `lines`, those that perf2bolt takes no runs from.

    Their borders are in doubt, they hold bytes that are no code, or they use `loop` or `jrcxz`.
    In a file without relocations all functions that are split are among them, in one with
    relocations those with something else than padding behind them (BOLT: BinaryFunction.cpp,
    disassemble; BinaryContext.cpp, registerFragment and hasValidCodePadding).
    """
    lost = functions.is_broken.copy()
    if image.machine == "x86-64":
        lost[lines.function[uses_short_loop(lines)]] = True
    lost |= _has_gaps(image, functions, lines)
    if has_relocations:
        lost |= _has_strange_padding(image, functions, lines)
    else:
        members = np.bincount(functions.family, minlength=len(functions))
        lost |= members[functions.family] > 1
    return lost


def _has_strange_padding(image: Image, functions: BoltFunctions, lines: Lines) -> Bools:
    """Functions of x86-64 with bytes behind them that are neither padding nor skipped by a jump."""
    strange = np.zeros(len(functions), np.bool_)
    if image.machine == "x86-64":
        for function in np.unique(lines.function).tolist():
            end, size = int(functions.end[function]), int(functions.size[function])
            padding = image.read(end, int(functions.reach[function]) - size)
            strange[function] = _PADDING.fullmatch(padding) is None
    return strange


def _has_gaps(image: Image, functions: BoltFunctions, lines: Lines) -> Bools:
    """Functions not filled with instructions; zeros at the end are padding."""
    covered = np.bincount(lines.function, weights=lines.size, minlength=len(functions))
    seen = covered > 0
    gaps = seen & (covered < functions.size)
    for function in np.flatnonzero(gaps).tolist():
        last = int(np.searchsorted(lines.function, function, side="right")) - 1
        behind = int(lines.address[last]) + int(lines.size[last])
        rest = image.read(behind, int(functions.end[function]) - behind)
        is_tail = int(covered[function]) + len(rest) == int(functions.size[function])
        gaps[function] = bool(any(rest)) or not is_tail
    return gaps
