"""Counts of source lines, moved to where the lines of a later source tree are."""

from __future__ import annotations

from lbr2pgo.profiles.carried.account import Account
from lbr2pgo.profiles.carried.fates import Fates, mentions
from lbr2pgo.profiles.carried.sample_carrier import carried_samples
from lbr2pgo.profiles.carried.successors import Successors
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile


def carried_lines(profile: SampleProfile, successors: Successors) -> tuple[SampleProfile, Account]:
    """A profile of source lines for the new tree, and what became of its counts."""
    fates = Fates(mentions(profile), successors, Account())
    return carried_samples(profile, fates), fates.account
