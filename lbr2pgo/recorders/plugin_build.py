"""Compile the QEMU plugin with the system's C compiler, once, and keep it in the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from lbr2pgo.support.errors import MissingToolError

SOURCES = Path(__file__).parent / "plugin"
_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")
_LIBRARIES = ("-ldl", "-lpthread")


def built_plugin(environment: Mapping[str, str] = os.environ) -> Path:
    """Path of the compiled plugin, compiled now unless the cache holds it.

    Raises MissingToolError if there is no C compiler, or if it fails.
    """
    plugin = plugin_path(environment)
    if not plugin.exists():
        _compile(_find_compiler(environment), plugin)
    return plugin


def plugin_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the plugin is, or will be once it is compiled.

    Its name depends on the sources and on the compiler with its version. `CC` names another
    compiler.
    """
    return cache_directory(environment) / f"lbr-{_key(_find_compiler(environment))}.so"


def cache_directory(environment: Mapping[str, str]) -> Path:
    """A directory of this user's own that exists and can be written.

    `XDG_CACHE_HOME` or `~/.cache`; without a usable home, one below the temporary directory.
    """
    home = environment.get("HOME")
    base = environment.get("XDG_CACHE_HOME") or (f"{home}/.cache" if home else None)
    if base is not None and Path(base).is_absolute():
        directory = Path(base) / "lbr2pgo"
        if _usable(directory):
            return directory
    directory = Path(tempfile.gettempdir()) / f"lbr2pgo-{os.getuid()}"
    # Anyone may create that name first: trust it only if it is this user's alone.
    return directory if _usable(directory) else Path(tempfile.mkdtemp(prefix="lbr2pgo-"))


def _usable(directory: Path) -> bool:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.lstat()
    except OSError:
        return False
    own = status.st_uid == os.getuid() and not status.st_mode & 0o022
    return own and os.access(directory, os.W_OK | os.X_OK)


def _find_compiler(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Its words: `CC` may give it options, or have `ccache` call it."""
    path = environment.get("PATH")
    asked = environment.get("CC", "").split()
    for name, *more in (asked,) if asked else ((each,) for each in _COMPILERS):
        found = shutil.which(name, path=path)
        if found:
            return (found, *more)
    raise MissingToolError(
        f"the software LBR needs a C compiler, and there is no {' '.join(asked) or 'cc'}",
        cure="Install one (Debian: apt-get install gcc libc6-dev), or name it in CC.",
    )


def _key(compiler: tuple[str, ...]) -> str:
    """What the plugin is made of, in 16 hex digits."""
    digest = hashlib.sha256()
    for source in sorted(SOURCES.iterdir()):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    version = subprocess.run([*compiler, "--version"], capture_output=True, check=False).stdout
    digest.update(repr((compiler, version, _FLAGS, _LIBRARIES, os.uname().machine)).encode())
    return digest.hexdigest()[:16]


def _compile(compiler: tuple[str, ...], plugin: Path) -> None:
    """Build beside, then rename: recordings that start together do not meet half a file."""
    handle, unfinished = tempfile.mkstemp(dir=plugin.parent, suffix=".so")
    os.close(handle)
    sources = sorted(map(str, SOURCES.glob("*.c")))
    command = [*compiler, *_FLAGS, *sources, "-o", unfinished, *_LIBRARIES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        Path(unfinished).unlink(missing_ok=True)
        raise MissingToolError(
            f"{' '.join(compiler)} can't compile the software LBR: {_complaint(done.stderr)}",
            where=str(SOURCES),
            cure="It needs a C compiler with the C library's headers "
            "(Debian: apt-get install gcc libc6-dev).",
        )
    Path(unfinished).chmod(0o755)
    Path(unfinished).replace(plugin)


def _complaint(stderr: str) -> str:
    lines = stderr.splitlines()
    telling = (line for line in lines if "error" in line)
    return next(telling, lines[0] if lines else "it gave no reason")
