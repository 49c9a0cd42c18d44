"""Counters in the program, clang's instrumented PGO: what profiles of samples are compared with.

The program is built with `-fprofile-generate` and writes its counts into a directory when it ends;
llvm-profdata adds them up (clang/docs/UsersManual.rst, "Profiling with Instrumentation").
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

from lbr2pgo.pgo.standard_input import reading
from lbr2pgo.pgo.steps import CommandLine, Say, command_words
from lbr2pgo.pgo.training import Training, check_trained
from lbr2pgo.profiles.llvm_tools import last_lines, llvm_tools
from lbr2pgo.support.errors import InputError, MissingToolError, OutputError


def count(training: Training, directory: Path, say: Say) -> None:
    """Run each command of a training with the counting build in its place.

    Raises InputError if one fails. What earlier runs have left in the directory is forgotten.
    """
    shutil.rmtree(directory, ignore_errors=True)
    for command in training.commands:
        source = "" if training.input is None else f" < {shlex.quote(str(training.input))}"
        say(CommandLine(f"{command}{source}"))
        with reading(training.input) as stdin:
            done = subprocess.run(command_words(command), stdin=stdin)
        check_trained(done.returncode, command, any_status=training.any_status)
    if not any(directory.glob("*.profraw")):
        raise InputError(
            "the training run has written no counts",
            where=str(directory),
            cure="The build must take CFLAGS and LDFLAGS, and the program end by itself.",
        )


def merge_counts(directory: Path, profile: Path, say: Say) -> None:
    """Write the profile for `-fprofile-use` by the first llvm-profdata that reads the counts.

    Each reads those of its own version of clang. Raises MissingToolError where there is none, else
    OutputError with what the first one said.
    """
    tools = llvm_tools("llvm-profdata")
    if not tools:
        raise MissingToolError(
            "llvm-profdata is not installed",
            cure="Install it (Debian: apt-get install llvm-22), or name it in LLVM_PROFDATA.",
        )
    failures = []
    for tool in tools:
        command = [tool, "merge", "-o", str(profile), str(directory)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if not done.returncode:
            say(CommandLine(shlex.join(command)))
            return
        failures.append(last_lines(done.stderr))
    raise OutputError(
        f"llvm-profdata could not add the counts up: {failures[0]}",
        where=str(profile),
        cure="LLVM_PROFDATA names the llvm-profdata that belongs to the compiler.",
    )
