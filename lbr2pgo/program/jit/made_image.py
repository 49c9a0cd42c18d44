"""An image of the code that one process made, laid out as a file would be.

Code has its run-time address. What was made later in the place of something else stands behind all
addresses of processes, and is mapped to its place from its time on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lbr2pgo.program.elf.file import FileInMemory
from lbr2pgo.program.elf.headers import Section
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.layout import ImageLayout, Segment
from lbr2pgo.program.elf.names import Names
from lbr2pgo.program.elf.symbols import STB_GLOBAL, STT_FUNC, Symbols
from lbr2pgo.program.jit.made_functions import JitFunction, laid
from lbr2pgo.support import budget
from lbr2pgo.support.addresses import FileOffset, ImageAddress, RuntimeAddress, image_array
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.intervals import last_at_or_below

_BEHIND = 1 << 47
"""Image address of what took another's place: no process has it, and a slot still holds it."""
_LARGEST_GAP = 1 << 16
"""Code with less in between is one segment."""
_MOST_LATER = 1024
"""Each function that takes another's place is one more view of the address space."""
_SHT_PROGBITS = 1
_CODE = (True, True, _SHT_PROGBITS, False, 0, 0)
"""Of a section: `is_code`, `is_alloc`, `type`, `is_compressed`, `link`, `entry_size`."""


@dataclass(frozen=True, slots=True)
class JitMapping:
    """From `time` on, `[start, start + size)` of a process is what the image holds at an offset."""

    time: int
    """0 for what takes nothing's place."""
    start: RuntimeAddress
    size: int
    file_offset: FileOffset


@dataclass(frozen=True, slots=True)
class JitImage:
    """Code that one process made."""

    image: Image
    functions: tuple[JitFunction, ...]
    """By image address."""
    start: tuple[int, ...]
    """Image address of each function."""
    mappings: tuple[JitMapping, ...]
    """Where the code is, by time."""

    @property
    def has_code(self) -> bool:
        """Whether its bytes are known."""
        return any(function.code for function in self.functions)

    def symbols(self) -> Symbols:
        """The functions' names as a symbol table."""
        count = len(self.functions)
        names = [function.name for function in self.functions]
        offsets = np.cumsum([0, *(len(name) + 1 for name in names)])[:-1]
        return Symbols(
            start=image_array(self.start),
            size=np.array([function.size for function in self.functions], np.uint64),
            names=Names(b"".join(name + b"\0" for name in names), offsets.astype(np.int64)),
            binding=np.full(count, STB_GLOBAL, np.uint8),
            kind=np.full(count, STT_FUNC, np.uint8),
            section=np.arange(count, dtype=np.int32),
            file=Names(b"", np.full(count, -1)),
            origin=self.image.path,
        )


def jit_image(path: str, machine: str, functions: Sequence[JitFunction]) -> JitImage:
    """The image of functions (at least one, by time) of a process, which `path` tells of."""
    first, later = laid(functions, _MOST_LATER)
    placed = sorted((*((f.address, f) for f in first), *_behind(later)), key=lambda each: each[0])
    _refuse_much(path, placed)
    content, segments = _stored(placed)
    layout = ImageLayout(path, None, machine, is_pie=True, segments=tuple(segments))
    starts = np.array([segment.address for segment in segments])
    of = last_at_or_below(starts, np.array([start for start, _ in placed])).tolist()
    offsets = [
        FileOffset(segments[i].file_offset + start - segments[i].address)
        for i, (start, _) in zip(of, placed, strict=True)
    ]
    mappings = [
        JitMapping(0, RuntimeAddress(each.address), each.memory_size, each.file_offset)
        for each in segments
        if each.address < _BEHIND
    ]
    mappings += [
        JitMapping(function.time, RuntimeAddress(function.address), function.size, offset)
        for offset, (start, function) in zip(offsets, placed, strict=True)
        if start >= _BEHIND
    ]
    sections = tuple(_section(*each, at) for each, at in zip(placed, offsets, strict=True))
    return JitImage(
        Image(layout, sections, FileInMemory(path, content)),
        tuple(function for _, function in placed),
        tuple(start for start, _ in placed),
        tuple(sorted(mappings, key=lambda mapping: mapping.time)),
    )


def _behind(later: Sequence[JitFunction]) -> Iterator[tuple[int, JitFunction]]:
    start = _BEHIND
    for function in later:
        yield start, function
        start += function.size


def _refuse_much(path: str, placed: Sequence[tuple[int, JitFunction]]) -> None:
    """Raise InputError if moved functions and gaps make much code of a small file."""
    coded = [(start, function.code) for start, function in placed if function.code]
    told = sum(len(code) for code in {id(code): code for _, code in coded}.values())
    gaps = sum(
        gap
        for (start, code), (after, _) in pairwise(coded)
        if 0 <= (gap := after - start - len(code)) <= _LARGEST_GAP
    )
    size = gaps + sum(len(code) for _, code in coded)
    if size > budget.MADE_CODE.of(told):
        raise InputError(
            f"has {told >> 20:,} MB of code, which its moves and gaps make {size >> 20:,} MB",
            where=path,
            cure="Leave it out: --no-libraries.",
        )


def _stored(placed: Sequence[tuple[int, JitFunction]]) -> tuple[bytes, list[Segment]]:
    """The code as one file, and where it lies there; nothing is stored where no code is known."""
    ends = [start + function.size for start, function in placed]
    far = [
        i
        for i, (end, (start, _)) in enumerate(zip(ends, placed[1:], strict=False), 1)
        if start - end > _LARGEST_GAP or end <= _BEHIND <= start
    ]
    content = bytearray()
    segments: list[Segment] = []
    offset = 0
    for first, past in pairwise((0, *far, len(placed))):
        begin, end = placed[first][0], ends[past - 1]
        for start, function in placed[first:past]:
            if function.code:
                content += bytes(offset + start - begin - len(content)) + function.code
        size = end - begin
        segments.append(
            Segment(ImageAddress(begin), FileOffset(offset), size, size, executable=True)
        )
        offset += size
    return bytes(content), segments


def _section(start: int, function: JitFunction, offset: FileOffset) -> Section:
    return Section(".text", start, function.size, offset, *_CODE)
