"""Written profiles for GCC: recognised, read, shown as LLVM's text form, and asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lbr2pgo.profiles.afdo import afdo
from lbr2pgo.profiles.afdo.afdo import GccProfile
from lbr2pgo.profiles.afdo.gcc_samples import gcc_samples
from lbr2pgo.profiles.llvm import sample_weights
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.profiles.llvm.stale_samples import of_samples
from lbr2pgo.profiles.llvm.written import TEXT
from lbr2pgo.profiles.reader import Merged, Merging, ProfileOverlap, Reader
from lbr2pgo.profiles.staleness import Staleness
from lbr2pgo.profiles.weights import ProfileWeights
from lbr2pgo.profiles.work import Work
from lbr2pgo.program.program import Program
from lbr2pgo.support.errors import InputError

if TYPE_CHECKING:
    from lbr2pgo.profiles.carried.account import Account
    from lbr2pgo.profiles.carried.successors import Successors


def merged(profiles: Iterable[tuple[GccProfile, int]]) -> Merged[GccProfile]:
    """The sum: counts add up as those of sample profiles; a function's first time is the earliest.

    Raises InputError for profiles of different versions, which no GCC reads both of.
    """
    total = GccProfile(SampleProfile())
    for number, (profile, weight) in enumerate(profiles):
        total.version = total.version if number else profile.version
        if profile.version != total.version:
            raise InputError(
                f"version {profile.version} of GCC's format can't be merged with {total.version}",
                cure="Convert them all with the same --afdo-version.",
            )
        total.samples.merge(profile.samples, weight)
        total.files |= profile.files
        for name, time in profile.first_seen.items():
            total.first_seen[name] = min(total.first_seen.get(name, time), time)
    return Merged(total)


class AfdoReader(Reader[GccProfile]):
    """See `Reader`."""

    kind = "GCC auto profiles"
    merging = Merging(merged, afdo.write)

    def recognises(self, head: bytes) -> bool:
        """See `Reader`."""
        return afdo.is_afdo(head)

    def read(self, path: Path) -> GccProfile:
        """See `Reader`."""
        return afdo.read(path)

    def lines(self, content: GccProfile) -> Iterator[str]:
        """As LLVM's; before them, when functions were first sampled, and their files."""
        first = sorted(content.first_seen.items(), key=lambda item: (item[1], str(item[0])))
        for name, time in first:
            yield f"# first sampled at {time} ns: {name}"
        for name, file in sorted(content.files.items(), key=str):
            yield f"# of {file}: {name}"
        yield from TEXT.lines(content.samples)

    def of_function(self, content: GccProfile, function: str) -> Iterator[str] | None:
        """See `Reader`."""
        return TEXT.of_function(content.samples, function)

    def functions(self, content: GccProfile) -> set[str]:
        """See `Reader`."""
        return TEXT.functions(content.samples)

    def samples(self, content: GccProfile) -> SampleProfile:
        """See `Reader`."""
        return content.samples

    def staleness(self, content: GccProfile, program: Program) -> Staleness | None:
        """See `Reader`."""
        return of_samples(content.samples, program, partial(gcc_samples, version=content.version))

    def weights(self, content: GccProfile) -> ProfileWeights:
        """See `Reader`."""
        return sample_weights.weights(content.samples, self.kind)

    def overlap(self, base: GccProfile, test: GccProfile) -> ProfileOverlap:
        """See `Reader`."""
        return TEXT.overlap(base.samples, test.samples)

    def carried(
        self, content: GccProfile, successors: Successors
    ) -> tuple[GccProfile, Account] | None:
        """See `Reader`."""
        from lbr2pgo.profiles.carried.line_profile import carried_lines

        samples, account = carried_lines(content.samples, successors)
        now = account.renamed
        first_seen = {now.get(str(name), name): at for name, at in content.first_seen.items()}
        files = {now.get(str(name), name): file for name, file in content.files.items()}
        return GccProfile(samples, content.version, first_seen, files), account

    def derived(self, work: Work, like: GccProfile | None) -> GccProfile | None:
        """In the version of `like`; None without debug information."""
        if not work.debug.present:
            return None
        version = afdo.USUAL_VERSION if like is None else like.version
        samples, _ = gcc_samples(work.flow, work.program, work.debug, version)
        return GccProfile(samples, version)


AFDO = AfdoReader()
