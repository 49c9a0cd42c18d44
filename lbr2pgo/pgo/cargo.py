"""Cargo: what it builds, and how flags reach rustc."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lbr2pgo.pgo.flags import BuildFlags
from lbr2pgo.pgo.reach import ByVariables
from lbr2pgo.support.errors import InputError, MissingToolError

BUILD = "cargo build --release"
_FRAMES = "force-frame-pointers"
_NAMES = {
    "-fdebug-info-for-profiling": ("debug-info-for-profiling", "debuginfo-for-profiling"),
    # Stable in newer ones: rust-lang/rust, PR 155942.
    "-fprofile-sample-use": ("profile-sample-use",),
    "-fno-omit-frame-pointer": (_FRAMES,),
}
"""Flags of clang, and rustc's names for the same; -g comes by Cargo's profile."""


@dataclass(frozen=True, slots=True)
class ByRustflags(ByVariables):
    """In RUSTFLAGS, behind the user's own."""

    def settings(self, flags: BuildFlags, environment: Mapping[str, str]) -> dict[str, str]:
        """RUSTFLAGS, and the debug information that Cargo would strip from a release build.

        What is behind -Z needs a nightly compiler, or RUSTC_BOOTSTRAP with a stable one.
        """
        own = environment.get("RUSTFLAGS", "").split()
        words = (*own, *rustc_flags(flags, known_options()))
        return {
            "RUSTFLAGS": " ".join(words),
            "CARGO_PROFILE_RELEASE_DEBUG": "1",
            "CARGO_PROFILE_RELEASE_STRIP": "none",
            **({"RUSTC_BOOTSTRAP": "1"} if _has_unstable(words) else {}),
        }

    def advice(self, flags: BuildFlags, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Flags, and Cargo's profile."""
        settings = self.settings(flags, environment)
        unstable = (
            "Keep RUSTC_BOOTSTRAP=1 in the environment, or take a nightly compiler: this one has "
            "what begins with -Z, but not as stable."
        )
        return (
            f"Keep in RUSTFLAGS: {settings['RUSTFLAGS']}",
            "Keep debug = 1 in Cargo.toml, under [profile.release].",
            *((unstable,) if "RUSTC_BOOTSTRAP" in settings else ()),
        )


def rustc_flags(flags: BuildFlags, known: frozenset[str]) -> list[str]:
    """What rustc calls the flags, by the options that it knows (`C name`, `Z name`).

    Raises MissingToolError where it has none for what makes a profile, or uses one. What only
    clang has is left out.
    """
    named = []
    for flag in flags.compile:
        name, equals, value = flag.partition("=")
        if name in _NAMES:
            named.append(_spelled(_NAMES[name], known) + equals + value)
    return [*named, *(f"-Clink-arg={flag}" for flag in flags.link)]


def _spelled(names: Sequence[str], known: frozenset[str]) -> str:
    """`-C` for what is stable, `-Z` for what is not."""
    for letter in "CZ":
        for name in names:
            if f"{letter} {name}" in known:
                return f"-{letter}{name}" + ("=yes" if name == _FRAMES else "")
    raise MissingToolError(
        f"this rustc has no {names[0]}",
        cure="Take a newer one, or --bolt with a stored build: llvm-bolt needs nothing of rustc.",
    )


def _has_unstable(words: Sequence[str]) -> bool:
    return any(word.startswith("-Z") for word in words)


@cache
def known_options() -> frozenset[str]:
    """What this machine's rustc says that it knows, those behind -Z among them."""
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
    found: set[str] = set()
    for letter in "CZ":
        done = subprocess.run(
            ["rustc", f"-{letter}", "help"], capture_output=True, text=True, env=environment
        )
        found |= {f"{letter} {name}" for name in re.findall(rf"-{letter}\s+([\w-]+)=", done.stdout)}
    return frozenset(found)


def check_cargo() -> None:
    """Raise MissingToolError where there is no Cargo."""
    if shutil.which("cargo") is None:
        raise MissingToolError("cargo is not installed", cure="Install Rust: https://rustup.rs")


def built_program() -> Path:
    """The one program that the package here builds for release.

    Raises InputError where there are several, or none.
    """
    check_cargo()
    command = ["cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise InputError(f"cargo knows of no package here: {said[0]}", cure=_NAME_IT)
    return _program_of(json.loads(done.stdout))


_NAME_IT = "Run it where Cargo.toml is, or name the program with --binary target/release/NAME."


def _program_of(metadata: Mapping[str, Any]) -> Path:
    programs = [
        target["name"]
        for package in metadata["packages"]
        for target in package["targets"]
        if "bin" in target["kind"]
    ]
    if len(programs) != 1:
        found = ", ".join(programs) or "none"
        raise InputError(f"one program is wanted, and the package builds: {found}", cure=_NAME_IT)
    return Path(os.path.relpath(metadata["target_directory"]), "release", programs[0])
