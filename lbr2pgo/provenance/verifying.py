"""Whether a profile came of what is told beside it: it is made again, and must be the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.registry import output
from lbr2pgo.program.elf.image import Image
from lbr2pgo.provenance.told import (
    Provenance,
    hash_of,
    needed_provenance,
    path_beside,
    why_no_longer,
)
from lbr2pgo.provenance.typed import typed_fields
from lbr2pgo.support.counted import counted
from lbr2pgo.support.errors import InputError


def why_not_verified(profile: Path, binary: Path, recordings: Sequence[Path]) -> str | None:
    """Why a profile can't have come of recordings of a program; None if it does, to the byte.

    Raises InputError where nothing says what it came of, or that is damaged, and as `convert`.
    """
    told = needed_provenance(profile)
    if why := why_no_longer(told, profile):
        return why
    wanted = Counter(each.sha256 for each in told.recordings)
    given = [(path, hash_of(path)) for path in recordings]
    for path, digest in given:
        if digest not in wanted:
            return f"{path} is none of the recordings that it came of"
    if Counter(digest for _, digest in given) != wanted:
        return f"it came of {counted(wanted.total(), 'recording')}, of which {len(given)} are given"
    build_id = Image.open(binary).layout.build_id
    if build_id != told.build_id:
        return f"it came of build {told.build_id}, and {binary} is {build_id}"
    with TemporaryDirectory() as folder:
        again = Path(folder, profile.name)
        convert(_remaking(told, recordings, binary, again, profile))
        is_same = hash_of(again) == told.sha256
    return None if is_same else "made again, it is another one"


def _remaking(
    told: Provenance, recordings: Sequence[Path], binary: Path, path: Path, profile: Path
) -> ConvertOptions:
    options = dict(told.options)
    try:
        form = type(output(told.output, path))
        own = typed_fields(form, options.pop("output", {}))
        return ConvertOptions(
            profiles=tuple(recordings),
            binary=binary,
            outputs=(output(told.output, path, **own),),
            **typed_fields(ConvertOptions, options),
        )
    except (TypeError, ValueError, KeyError, InputError):
        raise InputError(
            "names options that nobody can have given",
            where=str(path_beside(profile)),
            cure="Write it again: lbr2pgo convert --provenance.",
        ) from None
