"""Kernels and their modules in a recording: which mapping is the image, and where it was.

perf maps the kernel under a name, `[kernel.kallsyms]_text`, with the symbol's address at run time
as its file offset; a guest's under `[guest.kernel.kallsyms]_text`. A module is mapped from its
file, or from its name in brackets, where its first code is. None of these is of a process: every
sample sees them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from lbr2pgo.counting.address_spaces import Pieces, loaded, overlaid
from lbr2pgo.counting.find_image import (
    ImageMatch,
    not_mapped,
    of_alike,
    of_build,
)
from lbr2pgo.model.address_space_events import Mmap, SpaceEvent
from lbr2pgo.model.code_files import CodeFiles, executable_mmaps
from lbr2pgo.model.space_event_log import of_files
from lbr2pgo.program.elf.layout import MODULE, ImageLayout

_KERNEL = re.compile(r"(?P<file>\[(?:guest\.)?kernel\.kallsyms(?:\.\d+)?\])(?P<symbol>.*)")
_PACKED = re.compile(r"\.ko(?:\.(?:gz|xz|zst))?(?:\.debug)?$")


def match_kernel(
    layout: ImageLayout,
    events: Sequence[SpaceEvent],
    header_build_ids: Mapping[str, str],
    *,
    where: str,
    build_id: str | None = None,
) -> ImageMatch:
    """As `match_image`, of a kernel or a module: by build-id, or by what it is called."""
    shown = (mmap for mmap in executable_mmaps(of_files(events)) if _may_show(mmap, layout))
    files = CodeFiles(shown, header_build_ids, _file_of)
    wanted = build_id or layout.build_id
    found = of_build(files, wanted) or of_alike(files.builds, "name", wanted, layout, where)
    if found is None:
        raise not_mapped(layout, events, wanted, where=where)
    return found


def kernel_pieces(match: ImageMatch, events: Sequence[SpaceEvent], layout: ImageLayout) -> Pieces:
    """Where the image was, for all processes."""
    found = [
        piece
        for event in events
        if isinstance(event, Mmap) and match.shows(event)
        for piece in loaded(layout, _bias(event, layout))
    ]
    return overlaid(found)


def _may_show(event: Mmap, layout: ImageLayout) -> bool:
    kernel = _KERNEL.fullmatch(event.path)
    if MODULE in layout.anchors:
        return kernel is None and _module_name(event.path) == _module_name(layout.path)
    return kernel is not None and kernel["symbol"] in layout.anchors


def _bias(event: Mmap, layout: ImageLayout) -> int:
    """What to add to image addresses."""
    if event.is_as_linked:
        return 0
    kernel = _KERNEL.fullmatch(event.path)
    if kernel is None:
        return event.start - layout.anchors[MODULE]
    return event.file_offset - layout.anchors[kernel["symbol"]]


def _file_of(path: str) -> str:
    """What the header's build-ids call it: without the symbol."""
    kernel = _KERNEL.fullmatch(path)
    return path if kernel is None else kernel["file"]


def _module_name(path: str) -> str:
    """What the kernel calls a module.

    >>> [_module_name(p) for p in ("/lib/modules/6.1/snd-pcm.ko.xz", "[snd_pcm]", "snd-pcm.ko")]
    ['snd_pcm', 'snd_pcm', 'snd_pcm']
    """
    return _PACKED.sub("", PurePosixPath(path).name.strip("[]")).replace("-", "_")
