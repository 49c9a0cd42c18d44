"""Several images of one recording, for `lbr2pgo convert`: options, and what is said of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from lbr2pgo.cli import messages
from lbr2pgo.cli.parser import section
from lbr2pgo.cli.selection import add_binaries, add_sysroot
from lbr2pgo.support.errors import InputError

if TYPE_CHECKING:
    from lbr2pgo.fleet.images import ConvertedImage, Images, ImagesOptions

_NAME = 34


def add_images(parser: argparse.ArgumentParser) -> None:
    """Add --binary, which may be repeated or left out, --all-images and --sysroot."""
    group = section(parser, "which program")
    add_binaries(group)
    group.add_argument(
        "--all-images", action="store_true",
        help="convert every mapped file that is found; put {name} or {build_id} in outputs",
    )  # fmt: skip
    add_sysroot(group, "images of --all-images")


def run_images(options: ImagesOptions, summary: str | None, *, shows_timings: bool) -> int:
    """Convert each image, and say what became of each and of all."""
    from lbr2pgo.cli.progress import SampleProgress
    from lbr2pgo.fleet.images import convert_images
    from lbr2pgo.support.output import refuse_overwriting, refuse_unwritable
    from lbr2pgo.support.timings import Timings

    if summary is not None:
        refuse_overwriting([summary], [*options.profiles, *options.binaries])
        refuse_unwritable([summary])
    with SampleProgress(options.profiles) as progress:
        timings = Timings(progress.stage)
        done = convert_images(options, progress, timings)
    if summary is not None:
        _write_summary(done, summary)
    asked = {path.resolve() for path in options.binaries}
    _show(done, asked, sys.stdout if summary != "-" else sys.stderr)
    if shows_timings:
        messages.show_times(timings)
    if not any(image.is_complete for image in done.images):
        raise InputError("no image could be converted", cure="See the notes above.")
    return 2 if any(i.binary in asked and not i.is_complete for i in done.images) else 0


def _show(done: Images, asked: Collection[Path], stream: TextIO) -> None:
    from lbr2pgo.cli.waterfall import print_waterfall

    of_images = chain.from_iterable(image.result.notes for image in done.images)
    messages.warn(dict.fromkeys((*done.notes, *of_images)))
    for image in done.images:
        if image.is_complete and not messages.is_quiet():
            print(f"{image.binary}", file=stream)
            print_waterfall(image.result.tallies, stream)
            print(file=stream)
    if not messages.is_quiet():
        print(*_shares(done.images), sep="\n", file=stream)
    for image in done.images:
        for output in image.outputs if image.is_complete else ():
            messages.wrote(output.paths[0], output.next_step)
        if image.is_complete or image.has_branches or image.binary in asked:
            messages.note(f"{image.name}: {note}" for note in _notes(image))
    messages.note(done.notes)


def _notes(image: ConvertedImage) -> Iterator[str]:
    from lbr2pgo.model.doubts import parted
    from lbr2pgo.model.incomplete import IncompleteError

    if isinstance(image.result, IncompleteError):
        yield image.result.headline
    _, others = parted(image.result.notes)
    yield from others


def _shares(images: Sequence[ConvertedImage]) -> Iterator[str]:
    """A line for each image with branches, and how many there are beside."""
    read = max(image.tally("branches_read") for image in images)
    yield f"{'image':<{_NAME}}  {'branches':>13}   share  {'fall-throughs':>14}"
    there = [image for image in images if image.has_branches]
    for image in sorted(there, key=lambda i: (-i.tally("branches_in_image"), str(i.binary))):
        branches, runs = image.tally("branches_in_image"), image.tally("runs_valid")
        share = f"{branches / (read or 1):7.2%}"
        yield f"{image.name:<{_NAME}}  {branches:>13,} {share}  {runs:>14,}"
    if len(there) < len(images):
        yield f"{len(images) - len(there)} other images have no branch in these samples"


def _write_summary(done: Images, summary: str) -> None:
    import json

    from lbr2pgo.model.waterfall import row_as_json
    from lbr2pgo.profiles.registry import waterfall_rows
    from lbr2pgo.support.output import write_pieces

    images = [
        {
            "binary": str(image.binary),
            "build_id": image.build_id,
            "waterfall": [row_as_json(row) for row in waterfall_rows(image.result.tallies)],
        }
        for image in done.images
    ]
    text = json.dumps({"images": images}, indent=2) + "\n"
    write_pieces(summary, [text.encode()])
