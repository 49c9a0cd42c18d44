"""How much code a program has, and how much of it runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lbr2pgo.model.exact_counts import ExactCounts
from lbr2pgo.program.elf.image import Image
from lbr2pgo.sources.exact_counts import image_of
from lbr2pgo.support.errors import InputError

_PAGE = np.uint64(4096)
_HOT = 0.99


@dataclass(frozen=True, slots=True)
class CodeSize:
    """Of one program, in a run."""

    text: int
    """Bytes in sections of code; llvm-bolt keeps the old ones, where what it left alone runs."""
    hot_pages: int
    """The fewest pages of 4 KB that hold 99 % of its branches and of what they led to."""


def code_size(program: Path, counted: Path) -> CodeSize | None:
    """Of a program by the exact counts of a run; None where it is no ELF file, or did not run."""
    try:
        image = Image.open(program)
        exact = ExactCounts.load(counted)
        index = image_of(exact, image.layout, str(counted))
    except InputError:  # a script
        return None
    return CodeSize(_text_size(image), _hot_pages(exact, index))


def text_size(program: Path) -> int:
    """Bytes in sections of code; raises InputError where it is no ELF file."""
    return _text_size(Image.open(program))


def _text_size(image: Image) -> int:
    return sum(each.size for each in image.sections if each.is_code)


def _hot_pages(exact: ExactCounts, image: int) -> int:
    sources, targets = exact.from_image == image, (exact.to_image == image) & exact.taken
    places = np.concatenate((exact.from_[sources], exact.to[targets]))
    counts = np.concatenate((exact.count[sources], exact.count[targets]))
    _, page = np.unique(places // _PAGE, return_inverse=True)
    by_page = np.sort(np.bincount(page, counts.astype(np.float64)))[::-1]
    return int(np.searchsorted(np.cumsum(by_page), _HOT * by_page.sum())) + bool(len(by_page))
