"""Fetch the JavaScript libraries that the page is built with, and list them in README.md.

    python lbr2pgo/reports/assets/refresh.py

needs npm and the network. To take a newer version, change it here and run this.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from lbr2pgo.support.dataclass import dataclass

HERE = Path(__file__).parent
# A browser would look for what these name.
_SOURCE_MAP = re.compile(rb"\n(//|/\*)# sourceMappingURL=\S*\s*(\*/)?\s*$")
_TABLE = re.compile(r"(?<=<!-- libraries -->\n).*(?=<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Library:
    """A package of the npm registry, and which of its files we ship."""

    package: str
    version: str
    files: tuple[str, ...]


LIBRARIES = (
    Library(
        "tabulator-tables",
        "6.5.3",
        ("dist/js/tabulator.min.js", "dist/css/tabulator_simple.min.css", "LICENSE"),
    ),
    Library(
        "d3-flame-graph",
        "4.1.3",
        ("dist/d3-flamegraph.min.js", "dist/d3-flamegraph.css", "LICENSE"),
    ),
    Library("d3-selection", "3.0.1", ("dist/d3-selection.min.js", "LICENSE")),
    Library("uplot", "1.6.32", ("dist/uPlot.iife.min.js", "dist/uPlot.min.css", "LICENSE")),
    Library("@dagrejs/dagre", "3.1.3", ("dist/dagre.min.js", "LICENSE")),
)


def main() -> None:
    """Fetch all of them."""
    rows = [row for library in LIBRARIES for row in fetch(library)]
    head = "| file | package | version | licence | SHA-256 |\n| --- | --- | --- | --- | --- |\n"
    readme = HERE / "README.md"
    table = head + "".join(rows)
    readme.write_text(_TABLE.sub(lambda _: table, readme.read_text()))


def fetch(library: Library) -> list[str]:
    """Write a library's files here; their rows of the table."""
    with TemporaryDirectory() as scratch:
        command = ["npm", "pack", "--silent", f"{library.package}@{library.version}"]
        done = subprocess.run(command, cwd=scratch, check=True, capture_output=True, text=True)
        with tarfile.open(Path(scratch) / done.stdout.split()[-1]) as package:
            licence = json.loads(_member(package, "package.json"))["license"]
            return [
                _store(library, licence, name, _member(package, name)) for name in library.files
            ]


def _member(package: tarfile.TarFile, name: str) -> bytes:
    stream = package.extractfile(f"package/{name}")
    assert stream is not None, name
    return stream.read()


def _store(library: Library, licence: str, name: str, content: bytes) -> str:
    short = library.package.rpartition("/")[2]
    target = f"{short}.LICENSE" if name == "LICENSE" else Path(name).name
    kept = _SOURCE_MAP.sub(b"\n", content)
    (HERE / target).write_bytes(kept)
    digest = hashlib.sha256(kept).hexdigest()
    return f"| {target} | {library.package} | {library.version} | {licence} | {digest} |\n"


if __name__ == "__main__":
    main()
