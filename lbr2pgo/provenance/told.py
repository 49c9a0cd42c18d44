"""What a profile came of, as JSON beside it: `app.prof.json` for `app.prof`.

It names recordings by their hashes and the program by its build-id, and holds no path of a file and
no host. The schema is docs/schemas/provenance.schema.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from hashlib import file_digest
from pathlib import Path
from typing import Any

from lbr2pgo.model.doubts import Doubt
from lbr2pgo.provenance.typed import typed
from lbr2pgo.support.counted import counted
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError, readable
from lbr2pgo.support.output import write_pieces

FORMAT = "lbr2pgo-provenance-1"
_MOST = 1 << 24
"""Bytes of such a file: more are of something else."""


@dataclass(frozen=True, slots=True)
class ToldRecording:
    """A recording that a profile is of."""

    name: str
    sha256: str
    format: str
    recorder: str | None
    """What recorded it: perf and its version, the processor; as the recording says."""
    event: str | None
    period: int | None
    """Events between samples."""
    is_exact: bool
    """Every branch is counted, and none sampled."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a profile came of."""

    version: str
    """Of lbr2pgo."""
    output: str
    """Name of the profile's format, as `lbr2pgo.output` has it."""
    sha256: str
    """Of the profile."""
    program: str
    """The file's name."""
    build_id: str | None
    compilers: tuple[str, ...]
    """Of its units, those of most first; GCC adds its flags, clang with `-grecord-command-line`."""
    flags: tuple[str, ...]
    """Command lines of its compilers, where it has them (`-frecord-gcc-switches`)."""
    revision: str | None
    """Of the source tree, where it is in git: the commit that was checked out."""
    recordings: tuple[ToldRecording, ...]
    samples: int | None
    """Chosen of all recordings; None where they hold counts."""
    options: Mapping[str, Any]
    """Of the conversion and of the output, where they are not the usual ones."""

    def lines(self) -> Iterator[str]:
        """For people."""
        of_samples = "" if self.samples is None else f", {counted(self.samples, 'sample')}"
        yield f"written by lbr2pgo {self.version}{of_samples}"
        yield f"of {self.program}, build-id {self.build_id or 'unknown'}"
        yield from (f"compiled by {compiler}" for compiler in self.compilers)
        yield from (f"with {flags}" for flags in self.flags)
        if self.revision is not None:
            yield f"from commit {self.revision}"
        for each in self.recordings:
            period = "" if each.period is None else f"period {each.period:,}"
            told = ", ".join(filter(None, (each.recorder, each.event, period))) or each.format
            yield f"recorded in {each.name} ({told}), sha256 {each.sha256}"
        if self.options:
            yield f"options: {json.dumps(self.options)}"


def path_beside(profile: Path) -> Path:
    """Where the provenance of a profile is.

    >>> str(path_beside(Path("out/app.prof")))
    'out/app.prof.json'
    """
    return profile.with_name(f"{profile.name}.json")


def hash_of(path: Path) -> str:
    """SHA-256 of a file; raises InputError where it can't be read."""
    with readable(path), path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def write_provenance(provenance: Provenance, profile: Path) -> None:
    """Write it beside its profile; raises OutputError where it can't be."""
    text = json.dumps({"format": FORMAT, **asdict(provenance)}, indent=2) + "\n"
    write_pieces(path_beside(profile), [text.encode()])


def read_provenance(profile: Path) -> Provenance | None:
    """What is said beside a profile; None if nothing is. Raises InputError if it is damaged."""
    path = path_beside(profile)
    if not path.is_file():
        return None
    with readable(path), path.open("rb") as stream:
        content = stream.read(_MOST)
    try:
        told = json.loads(content)
        if told.pop("format") != FORMAT:
            raise ValueError
        told["recordings"] = [_known(ToldRecording, each) for each in told["recordings"]]
        made: Provenance = typed(Provenance, _known(Provenance, told))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InputError(
            f"is no provenance ({FORMAT}), or damaged",
            where=str(path),
            cure="Write it again: lbr2pgo convert --provenance; or remove it.",
        ) from None
    return made


def _known(kind: Any, told: Mapping[str, Any]) -> dict[str, Any]:
    """What a record has fields for: later versions may tell more. Raises KeyError for a lack."""
    return {each.name: told[each.name] for each in fields(kind)}


def needed_provenance(profile: Path) -> Provenance:
    """As `read_provenance`; raises InputError where nothing is said, too."""
    told = read_provenance(profile)
    if told is None:
        raise InputError(
            f"has no provenance: there is no {path_beside(profile).name}",
            where=str(profile),
            cure="Write it with the profile: lbr2pgo convert --provenance.",
        )
    return told


def why_no_longer(told: Provenance, profile: Path) -> str | None:
    """Why it is not told of a profile as it is now; None where it is."""
    if hash_of(profile) == told.sha256:
        return None
    return f"{profile} was changed since it was written"


def provenance_doubts(told: Provenance | None, profile: Path) -> tuple[Doubt, ...]:
    """What questions all that is told beside a profile."""
    why = None if told is None else why_no_longer(told, profile)
    return () if why is None else (Doubt(f"{why}: its provenance is that of another profile"),)


def is_exact(profile: Path) -> bool:
    """Whether a profile is told to be of exact counts, and is the one that this is told of."""
    told = read_provenance(profile)
    if told is None or not all(each.is_exact for each in told.recordings):
        return False
    return why_no_longer(told, profile) is None
