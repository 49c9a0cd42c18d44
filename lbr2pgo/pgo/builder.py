"""Builds of a loop: by the way on which flags reach the compiler, found by trying."""

from __future__ import annotations

import filecmp
import shutil
from collections.abc import Callable
from pathlib import Path
from time import time

from lbr2pgo.pgo import STEPS
from lbr2pgo.pgo.built_code import same_code
from lbr2pgo.pgo.cargo import ByRustflags
from lbr2pgo.pgo.flags import BuildFlags, with_remarks
from lbr2pgo.pgo.loop_options import LoopOptions
from lbr2pgo.pgo.reach import ByName, ByVariables, way_for
from lbr2pgo.pgo.remarks import keep_remarks
from lbr2pgo.pgo.steps import Say, put, run_build
from lbr2pgo.pgo.workplace import Workplace
from lbr2pgo.support.errors import InputError

Fault = Callable[[], str | None]
"""Says in a sentence what shows that flags did not reach the build; None where they did."""


class Builder:
    """Builds the binary in its place, again and again with other flags.

    A build that does not heed variables is given compilers of the same names which add the flags;
    so are all later ones.
    """

    def __init__(self, options: LoopOptions, work: Workplace, say: Say) -> None:
        self._command, self._binary, self._remarks = options.build, options.binary, options.remarks
        self._work, self._say = work, say
        self.way = ByRustflags() if options.cargo else way_for(options.build)
        """How flags reach the compiler."""
        if options.first != STEPS[0] and work.compilers.exists():  # had to go this way
            self.way = ByName(work.compilers)
        self._began = 0.0

    def build(self, flags: BuildFlags, fault: Fault = lambda: None) -> str | None:
        """Build; once more by name, where variables are at fault. Gives what still is.

        Raises as `run_build` does.
        """
        self._run(flags)
        found = fault()
        if found is not None and type(self.way) is ByVariables:
            self._say(
                f"   {found}. Builds again, with compilers that add the flags and a strip that "
                f"does nothing, in {self._work.compilers}."
            )
            self.way = ByName(self._work.compilers)
            self._run(flags)
            found = fault()
        return found

    def go_back_to(self, way: ByVariables) -> None:
        """To the way of an earlier build, where a later one had no use for another."""
        if self.way is not way:
            self.way = way
            shutil.rmtree(self._work.compilers)

    def build_anew(self, flags: BuildFlags, before: Path, after: Path) -> None:
        """Build, and keep what differs from what was there before.

        Raises InputError where nothing does.
        """
        put(before, self._binary)

        def is_as_before() -> str | None:
            same = filecmp.cmp(self._binary, before, shallow=False)
            return "It is as it was before: the build sets its own flags" if same else None

        if self.build(flags, is_as_before) is not None:
            raise InputError(
                "is as it was before: the build did not compile it anew, or not with its flags",
                where=str(self._binary),
                cure="Let --build start from scratch and take CFLAGS from the environment, as "
                "`make clean all` and `cmake --fresh …` do.",
            )
        if same_code(self._binary, before):
            self._say(
                "   Note: its code is as before: the compiler had no use for what it was given, or "
                "was not given it."
            )
        self.keep(after)

    def keep(self, build: Path) -> None:
        """Keep what was just built, and what the compiler said of it."""
        put(self._binary, build)
        if self._remarks:
            places = {Path.cwd(), self._binary.absolute().parent}
            if not keep_remarks(build, places, self._began, self._work.directory):
                self._say(
                    "   Note: the build left no remarks (*.opt.yaml) where they are looked for."
                )

    def _run(self, flags: BuildFlags) -> None:
        self._began = time()
        if self._remarks:
            flags = with_remarks(flags)
        run_build(self._command, flags, self._binary, self._say, self.way, self._work.log)
