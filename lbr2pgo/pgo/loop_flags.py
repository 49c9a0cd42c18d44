"""Flags of each build of a loop: what options ask for, with the files that earlier steps left."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lbr2pgo.pgo.flags import (
    BuildFlags,
    WantedFlags,
    base_flags,
    layout_flags,
    order_flags,
    plain_flags,
    profile_flags,
    training_flags,
)
from lbr2pgo.pgo.loop_options import LoopOptions
from lbr2pgo.pgo.post_link import bolt_command
from lbr2pgo.pgo.thread_locals import with_inlined_wrappers
from lbr2pgo.pgo.training import walks_frame_pointers
from lbr2pgo.pgo.workplace import Workplace


@dataclass(frozen=True, slots=True)
class LoopFlags:
    """By the build that they are for."""

    options: LoopOptions
    work: Workplace

    @property
    def wanted(self) -> WantedFlags:
        """What all builds are for."""
        options = self.options
        walks_frames = options.train is not None and walks_frame_pointers(options.train)
        return WantedFlags(
            options.compiler, options.bolt, options.propeller, options.startup, options.probes,
            options.unrelaxed, walks_frames, options.training_flags, options.copy_of,
            options.profile_flags, self.work.counts if options.instrumented else None,
        )  # fmt: skip

    @property
    def base(self) -> BuildFlags:
        """Of what the others are measured against."""
        return base_flags(self.wanted)

    @property
    def plain(self) -> BuildFlags:
        """Of the build without a profile."""
        return plain_flags(self.wanted)

    @property
    def has_marks(self) -> bool:
        """Whether what profiles and layouts need changes the code of a build."""
        return self.base.compile != self.plain.compile

    @property
    def trains_apart(self) -> bool:
        """Whether a build is recorded that is made for nothing else, and no other one beside it."""
        is_trained = bool(self.wanted.only_recorded) and self.options.profile is None
        return is_trained and not self.options.both

    @property
    def training(self) -> BuildFlags:
        """Of the build that is recorded for the compiler."""
        return training_flags(self.wanted)

    @property
    def profile(self) -> BuildFlags:
        """Of the build with the profile."""
        wanted = self.wanted
        if not self.options.cargo:  # rustc has its own way to thread-local variables
            wanted = with_inlined_wrappers(wanted, self.work.unprofiled)
        return profile_flags(self.profile_file, wanted)

    @property
    def profile_file(self) -> Path:
        """What the compiler reads: a stored one, or what the training is made into."""
        return self.options.profile or self.work.profile

    @property
    def compiled(self) -> BuildFlags:
        """Of the newest build."""
        return self.profile if self.work.rebuilt.exists() else self.plain

    @property
    def layout(self) -> BuildFlags:
        """Of the build that Propeller lays out."""
        return layout_flags(self.compiled, self.work.clusters, self.work.order)

    @property
    def order(self) -> BuildFlags:
        """Of the build whose functions are in the order of the start."""
        return order_flags(self.compiled, self.work.start_order)

    def bolt_command(self, tool: str) -> list[str]:
        """By which llvm-bolt, at this path, lays the binary out."""
        profile, binary = self.layout_profile, self.options.binary
        is_stored = self.options.bolt_profile is not None
        return bolt_command(tool, binary, profile, self.work.laid_out, infers=is_stored)

    @property
    def layout_profile(self) -> Path:
        """What llvm-bolt reads: a stored one, or what its own training is made into."""
        return self.options.bolt_profile or self.work.fdata
