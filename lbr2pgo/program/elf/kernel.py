"""What of a kernel's code a recording names: where its first symbols are, or a module's first code.

perf says where `_text` or `_stext` was when it recorded, which tells how far the kernel was moved
(perf: tools/perf/util/event.c, perf_event__synthesize_kernel_mmap, v6.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.layout import MODULE
from lbr2pgo.program.elf.modules import BASE, MARKS
from lbr2pgo.program.elf.symbols import read_symbols
from lbr2pgo.support.addresses import ImageAddress

_SYMBOLS = ("_text", "_stext")
_UPPER_HALF = 63
"""Kernels of 64-bit machines run at addresses with this bit."""


def anchored(image: Image) -> Image:
    """An image that knows its anchors (see `ImageLayout`), which only kernel code has."""
    anchors = _anchors(image)
    return replace(image, layout=replace(image.layout, anchors=anchors)) if anchors else image


def _anchors(image: Image) -> Mapping[str, ImageAddress]:
    code = [s.address for s in image.layout.segments if s.executable and s.address >> _UPPER_HALF]
    if code and image.is_stripped:
        return {_SYMBOLS[0]: code[0]}  # a kernel begins with it
    if code:
        symbols = read_symbols(image)
        found = {name: symbols.by_name(name) for name in _SYMBOLS}
        return {
            name: ImageAddress(int(symbols.start[row]))
            for name, row in found.items()
            if row is not None
        }
    is_module = any(image.section(mark) is not None for mark in MARKS)
    return {MODULE: ImageAddress(BASE)} if is_module else {}
