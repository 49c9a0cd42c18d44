"""Run the suite's fast part on every other Python that is found: `make test-pythons`.

Found are those on PATH and pyenv's; on Debian others are unpacked from its next release. Each gets
an environment with what the package needs, and the loops, compiled without optimising: what is
tested is that they run. Versions to test may be named: `tests/pythons.py 3.14`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from threading import Lock
from time import monotonic

import debian_python
from builders.fixtures import ROOT

HOMES = ROOT / "build" / "pythons"
SUPPORTED = ("3.11", "3.12", "3.13", "3.14", "3.14t")
"""3.14t has no global lock; LIEF has no wheel for the one before."""
FAST = (
    "tests/model", "tests/counting", "tests/support/test_output.py", "tests/api",
    "tests/cli/test_mistakes.py",
)  # fmt: skip
TOOLS = ("pytest", "hypothesis", "jsonschema", "cython>=3.2", "setuptools>=77")

COMPILING = Lock()
"""All write their C code to the same place."""


def candidates(version: str) -> Iterator[Path]:
    """Programs that may be an interpreter of a version: pyenv's stand-ins may lead nowhere."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(pyenv.glob(f"versions/{version.rstrip('t')}*/bin/python{version}"))
    found = shutil.which(f"python{version}")
    if found:
        yield Path(found)


def has_all_it_needs(python: Path, is_free: bool) -> bool:
    """Whether it runs, has headers to compile with, and can make environments.

    Free-threaded ones are installed by the other name, too.
    """
    script = (
        "import os, sysconfig, venv; "
        f"is_other = bool(sysconfig.get_config_var('Py_GIL_DISABLED')) is not {is_free}; "
        "has_none = not os.path.exists(sysconfig.get_path('include') + '/Python.h'); "
        "raise SystemExit(is_other or has_none)"
    )
    return subprocess.run([python, "-c", script], capture_output=True).returncode == 0


def find(version: str) -> Path | None:
    is_free = version.endswith("t")
    for python in candidates(version):
        if has_all_it_needs(python, is_free):
            return python
    # Debian has none that are free-threaded.
    return None if is_free else debian_python.fetch(version, HOMES / f"debian-{version}")


def run(version: str, python: Path) -> tuple[str, int, str]:
    """Test one; gives its version, the exit code, and what was printed."""
    start = monotonic()
    home = HOMES / version
    own = home / "bin" / "python"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    build = ["setup.py", "-q", "build_ext", "--inplace", "--build-temp", str(home / "objects")]
    steps = (
        [str(python), "-m", "venv", "--without-pip", str(home)],
        [sys.executable, "-m", "pip", "--python", str(own), "install", "--quiet",
         *project["dependencies"], *TOOLS],
        [str(own), *build],
        [str(own), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow and not long",
         *FAST],
    )  # fmt: skip
    # Debian's pyconfig.h stands in a directory of the machine's kind beside the headers.
    headers = python.resolve().parents[1] / "include"
    environment = {**os.environ, "CFLAGS": f"-O0 -w -idirafter {headers}"}
    said = ""
    for step in steps:
        with COMPILING if build[0] in step else nullcontext():
            done = subprocess.run(step, cwd=ROOT, env=environment, capture_output=True, text=True)
        said = done.stdout + done.stderr
        if done.returncode:
            return version, done.returncode, said
    *_, last = said.strip().splitlines()
    return version, 0, f"{last} ({monotonic() - start:.0f} s in all)"


def main() -> int:
    """Test those that are named, or every version but our own; 1 if one fails."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    others = sys.argv[1:] or [version for version in SUPPORTED if version != own]
    found = {version: python for version in others if (python := find(version))}
    for version in others:
        if version not in found:
            print(f"Python {version}: not found here, not tested")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda item: run(*item), found.items()))
    for version, code, said in results:
        print(f"Python {version}: {'failed' if code else 'passed'}\n{said}")
    return int(any(code for _, code, _ in results))


if __name__ == "__main__":
    raise SystemExit(main())
