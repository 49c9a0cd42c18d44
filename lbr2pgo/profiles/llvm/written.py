"""Written sample profiles: recognised, read, shown as text, whole or of one function, and asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.profiles.llvm import extbinary, sample_quality, sample_weights, text
from lbr2pgo.profiles.llvm.located import correlated, probed
from lbr2pgo.profiles.llvm.sample_names import guid
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile
from lbr2pgo.profiles.llvm.sample_weights import with_inlined
from lbr2pgo.profiles.llvm.stale_samples import of_samples
from lbr2pgo.profiles.reader import Merged, Merging, ProfileOverlap, Reader, lines_written
from lbr2pgo.profiles.staleness import Staleness
from lbr2pgo.profiles.weights import ProfileWeights
from lbr2pgo.profiles.work import Work
from lbr2pgo.program.program import Program
from lbr2pgo.support.arrays import U64
from lbr2pgo.support.counted import counted

if TYPE_CHECKING:
    from lbr2pgo.profiles.carried.account import Account
    from lbr2pgo.profiles.carried.successors import Successors


def merged(profiles: Iterable[tuple[SampleProfile, int]]) -> Merged[SampleProfile]:
    """The sum, as `llvm-profdata merge --sample` makes it."""
    total, left_out = SampleProfile(), 0
    for profile, weight in profiles:
        left_out += total.merge(profile, weight)
    notes = (f"{left_out:,} functions are left out: of other code, by their checksums",)
    return Merged(total, notes if left_out else ())


class SamplesReader(Reader[SampleProfile]):
    """Either form. See `Reader`."""

    kind = "LLVM sample profiles"

    def __init__(
        self,
        recognises: Callable[[bytes], bool],
        read: Callable[[Path], SampleProfile],
        write: Callable[[SampleProfile, Path], None],
    ) -> None:
        self._recognises, self._read, self.merging = recognises, read, Merging(merged, write)

    def recognises(self, head: bytes) -> bool:
        """See `Reader`."""
        return self._recognises(head)

    def read(self, path: Path) -> SampleProfile:
        """See `Reader`."""
        return self._read(path)

    def lines(self, content: SampleProfile) -> Iterator[str]:
        """The text form, whatever form the profile was read from."""
        return lines_written(text.write, content)

    def of_function(self, content: SampleProfile, function: str) -> Iterator[str] | None:
        """The function itself, then a comment for each inlined copy; None if there is neither."""
        wanted = guid(function)
        own = {key: each for key, each in content.functions.items() if guid(each.name) == wanted}
        nested = [
            line for top in content.ordered() for line in _inlined(top, str(top.name), wanted)
        ]
        if not own and not nested:
            return None
        return iter([*self.lines(replace(content, functions=own)), *nested])

    def functions(self, content: SampleProfile) -> set[str]:
        """Names of all functions, of those that are inlined too."""
        return {str(each.name) for top in content.functions.values() for each in with_inlined(top)}

    def samples(self, content: SampleProfile) -> SampleProfile:
        """See `Reader`."""
        return content

    def counted(self, content: SampleProfile) -> U64:
        """See `Reader`."""
        functions = content.functions.values()
        return np.fromiter(chain.from_iterable(map(sample_quality.counts_of, functions)), np.uint64)

    def staleness(self, content: SampleProfile, program: Program) -> Staleness | None:
        """See `Reader`."""
        return of_samples(content, program)

    def weights(self, content: SampleProfile) -> ProfileWeights:
        """See `Reader`."""
        return sample_weights.weights(content)

    def overlap(self, base: SampleProfile, test: SampleProfile) -> ProfileOverlap:
        """See `Reader`."""
        return sample_quality.compare(base, test)

    def carried(
        self, content: SampleProfile, successors: Successors
    ) -> tuple[SampleProfile, Account] | None:
        """See `Reader`."""
        if content.is_probe_based:
            return None
        from lbr2pgo.profiles.carried.line_profile import carried_lines

        return carried_lines(content, successors)

    def carried_to_build(
        self, content: SampleProfile, old: Program, new: Program, where: str
    ) -> tuple[SampleProfile, Account] | None:
        """See `Reader`."""
        if not content.is_probe_based:
            return None
        from lbr2pgo.profiles.carried.probe_fates import carried_probes

        return carried_probes(content, old, new)

    def derived(self, work: Work, like: SampleProfile | None) -> SampleProfile | None:
        """What `convert` would write without contexts; None if there can't be one."""
        if work.program.probes.present:
            return work.once(probed).table.tree()
        return work.once(correlated).table.tree() if work.debug.present else None


def _inlined(function: FunctionSamples, chain: str, wanted: int) -> Iterator[str]:
    for location, callee in function.inlined():
        inner = f"{chain}:{text.place_text(location)} @ {callee.name}"
        if guid(callee.name) == wanted:
            yield f"# inlined, {counted(callee.total, 'sample')}: {inner}"
        yield from _inlined(callee, inner, wanted)


BINARY = SamplesReader(extbinary.is_binary_profile, extbinary.read, extbinary.write)
TEXT = SamplesReader(text.is_text_profile, text.read, text.write)
