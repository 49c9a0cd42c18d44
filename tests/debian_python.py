"""A Python of a newer Debian than this one, unpacked into a directory: for `tests/pythons.py`.

apt finds the packages and what they depend on, checks their signatures and fetches them, with lists
of its own: nothing is installed, and no root is needed. The interpreter is then told where the
newer C library is that came with it, which runs what this Debian's compiler makes, too.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

RELEASE = "forky"
"""Debian 14."""
TOOLS = ("apt-get", "dpkg-deb", "patchelf")
OF_ANOTHER_C = ("libc6-dev", "linux-libc-dev", "libc-dev-bin")
"""What the headers are compiled with is this Debian's."""


def fetch(version: str, home: Path) -> Path | None:
    """The interpreter, unpacked below `home`; None where this is no Debian or can't reach it."""
    root = home / "root"
    python = root / "usr" / "bin" / f"python{version}"
    if (home / "ready").exists():
        return python
    if not all(map(shutil.which, TOOLS)):
        return None
    try:
        for package in _download(f"python{version}-dev", home):
            _run("dpkg-deb", "-x", package, root)
        (loader,) = root.glob("usr/lib/*/ld-linux-*.so.*")
        _run(
            "patchelf", "--set-interpreter", loader, "--force-rpath", "--set-rpath", loader.parent,
            python,
        )  # fmt: skip
    except (subprocess.CalledProcessError, ValueError):
        return None
    (home / "ready").touch()
    return python


def _download(package: str, home: Path) -> Sequence[Path]:
    """A package and all that it needs, as files."""
    mirror = _run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Label: Debian").split()[:1]
    if not mirror:
        raise ValueError("this is no Debian")
    for part in ("state/lists/partial", "cache/archives/partial"):
        (home / part).mkdir(parents=True, exist_ok=True)
    sources = home / "sources.list"
    sources.write_text(f"deb {mirror[0]} {RELEASE} main\n")
    settings = (
        f"Dir::State={home / 'state'}", f"Dir::Cache={home / 'cache'}",
        f"Dir::Etc::sourcelist={sources}", "Dir::Etc::sourceparts=-",
        "Dir::State::status=/dev/null",  # as if nothing were installed
        "Acquire::Check-Valid-Until=false",  # a mirror may stand still
    )  # fmt: skip
    apt = ("apt-get", "-qq", *(word for each in settings for word in ("-o", each)))
    _run(*apt, "update")
    _run(*apt, "install", "--download-only", "--yes", "--no-install-recommends", package)
    files = sorted((home / "cache" / "archives").glob("*.deb"))
    return [file for file in files if not file.name.startswith(OF_ANOTHER_C)]


def _run(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
