"""Whether two builds of a program do the same, seen from outside."""

from __future__ import annotations

import hashlib
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lbr2pgo.pgo.measure import is_native
from lbr2pgo.pgo.standard_input import reading
from lbr2pgo.pgo.steps import command_words, put
from lbr2pgo.pgo.training import Training
from lbr2pgo.support.errors import InputError


def check_same_work(training: Training, place: Path, first: Path, second: Path) -> None:
    """Run the training's commands natively with each build in its place.

    The second one stays there. Raises InputError for the first command whose exit code or standard
    output differ, unless they differ between two runs of the first build, too. Says nothing of
    programs for other processors.
    """
    for command in map(command_words, training.commands):
        put(second, place)
        if not is_native(command):
            return
        source = training.input
        result = _result(command, source)
        put(first, place)
        plain = _result(command, source)
        differs = plain != result and plain == _result(command, source)
        put(second, place)
        if differs:
            raise InputError(
                "it does not do the same as the build without a profile",
                where=shlex.join(command),
                cure="Its exit code or its output differs: look for undefined behaviour.",
            )


def _result(command: Sequence[str], source: Path | None) -> tuple[int, str]:
    with reading(source) as stdin:
        done = subprocess.run(
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    return done.returncode, hashlib.sha256(done.stdout).hexdigest()
