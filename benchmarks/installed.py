"""What an installation takes on disk, and whether the first conversion costs more than others.

Makes a new environment in a folder, installs this checkout there with pip, and converts a
shipped recording again and again, with what was installed (`-P`), not with the checkout.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import measure

ROOT = Path(__file__).parents[1]
RECORDING = ROOT / "testbins" / "recordings" / "x86-64-interp.pie.perf.data"
PROGRAM = ROOT / "testbins" / "x86-64" / "interp.pie"
LATER = 10
_SIZES = """
from importlib.metadata import distributions
for each in distributions():
    paths = [each.locate_file(file) for file in each.files or ()]
    print(each.name, sum(path.stat().st_size for path in paths if path.is_file()))
"""
WITH_EVERY_ENVIRONMENT = {"pip", "setuptools"}


def install(folder: Path) -> Path:
    """The Python of a new environment that has the package."""
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", ROOT], check=True)
    return python


def sizes(python: Path) -> Iterator[tuple[str, float]]:
    """What was installed, the largest first, and its megabytes."""
    found = subprocess.run([python, "-Pc", _SIZES], capture_output=True, text=True, check=True)
    rows = [line.split() for line in found.stdout.splitlines()]
    for name, size in sorted(rows, key=lambda row: -int(row[1])):
        if name not in WITH_EVERY_ENVIRONMENT:
            yield name, int(size) / 1e6


def conversion(python: Path, folder: Path) -> measure.Cost:
    """What one costs."""
    outputs = ["--llvm", str(folder / "profile"), "--fdata", str(folder / "fdata")]
    command = [python, "-Pm", "lbr2pgo", "convert", RECORDING, "--binary", PROGRAM, *outputs]
    return measure.run(list(map(str, command)))


def main() -> None:
    """Print all of it."""
    with tempfile.TemporaryDirectory() as out:
        python = install(Path(out) / "environment")
        first = conversion(python, Path(out))
        later = [conversion(python, Path(out)).cpu for _ in range(LATER)]
        found = list(sizes(python))
    print(f"first conversion: {first.cpu:.3f} s CPU")
    print(f"the {LATER} after it: {min(later):.3f} to {max(later):.3f}, median {median(later):.3f}")
    print(f"installed: {sum(size for _, size in found):.1f} MB")
    for name, size in found:
        print(f"  {name} {size:.1f}")


if __name__ == "__main__":
    main()
