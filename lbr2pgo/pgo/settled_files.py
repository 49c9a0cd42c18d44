"""A new profile settled onto the one that is committed, from files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lbr2pgo.analyses.settling import Settled, settle
from lbr2pgo.profiles.llvm import text
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.profiles.registry import read_alike
from lbr2pgo.provenance.told import hash_of, read_provenance, write_provenance
from lbr2pgo.provenance.told import is_exact as is_told_exact
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.output import refuse_overwriting, refuse_unwritable


def settle_files(new: Path, onto: Path, output: Path, *, is_exact: bool = False) -> Settled:
    """Write the settled profile, as text that is meant to be committed.

    Counts are exact, too, where the provenance of both says so; what the new profile came of is
    told beside it, too. Raises InputError for what are no sample profiles of one kind, and
    OutputError.
    """
    refuse_overwriting([output], [new, onto])
    before, after = read_alike(onto, new)
    if not isinstance(after.content, SampleProfile):
        raise InputError(
            f"is no sample profile for clang ({after.reader.kind})",
            where=str(new),
            cure="Others are committed as they are; lbr2pgo diff tells what is chance.",
        )
    refuse_unwritable([output])
    is_exact = is_exact or (is_told_exact(new) and is_told_exact(onto))
    settled = settle(after.content, before.content, is_exact=is_exact)
    text.write(settled.profile, output, by_name=True)
    provenance = read_provenance(new)
    if provenance is not None:
        write_provenance(replace(provenance, sha256=hash_of(output)), output)
    return settled
