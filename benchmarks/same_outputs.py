"""Which outputs another checkout makes otherwise of every corpus and testbin input, byte for byte.

Called with the other checkout, where `make install` was run as it was here. Exits 1 if any differ.
"""

from __future__ import annotations

import filecmp
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from inputs import unpacked

ROOT = Path(__file__).parents[1]
TESTBINS, CORPUS = ROOT / "testbins", ROOT.parent / "shared" / "corpus"
_PAIRS = {
    "sqlite/sq.perf.data.zst": "sqlite/sq.zst",
    "bolt/openssl.preagg.txt.zst": "bolt/openssl.zst",
    "autofdo/test.lbr.zst": "autofdo/test.binary",
    "autofdo/propeller_sample_1.perfdata1.zst": "autofdo/propeller_sample_1.bin",
}
"""Recordings of the corpus and their programs, where names don't tell."""


def inputs(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Recordings and their programs; packed ones are unpacked into the folder."""
    for recording in sorted((TESTBINS / "recordings").glob("*.perf.data")):
        machine, _, program = recording.name.removesuffix(".perf.data").rpartition("-")
        yield recording, TESTBINS / machine / program
    for recording in sorted((CORPUS / "llvm-profgen").glob("*perfscript")):
        program = CORPUS / "llvm-profgen" / recording.name.replace("agg", "")
        program = program.with_suffix(".perfbin")
        if program.exists():
            yield recording, program
    for pair in _PAIRS.items():
        if all((CORPUS / name).exists() for name in pair):
            recording, program = (_plain(CORPUS / name, folder) for name in pair)
            yield recording, program


def _plain(path: Path, folder: Path) -> Path:
    return unpacked(path, folder / path.stem) if path.suffix == ".zst" else path


def outputs(checkout: Path, recording: Path, program: Path, folder: Path) -> dict[str, Path]:
    """Every output that can be made, by its name."""
    folder.mkdir()
    command = [checkout / ".venv" / "bin" / "python", "-m", "lbr2pgo", "convert", recording]
    command += ["--binary", program, "--all", folder / "out"]
    subprocess.run(list(map(str, command)), cwd=checkout, capture_output=True)
    return {path.name: path for path in folder.iterdir()}


def main() -> None:
    """Print what differs, and how many are the same."""
    other, same, differs = Path(sys.argv[1]).resolve(), 0, []
    with tempfile.TemporaryDirectory() as made:
        for n, pair in enumerate(inputs(Path(made))):
            here, there = (
                outputs(root, *pair, Path(made, f"{n}{side}"))
                for side, root in (("here", ROOT), ("there", other))
            )
            for name in sorted(here.keys() | there.keys()):
                if name in here.keys() & there.keys() and filecmp.cmp(
                    here[name], there[name], shallow=False
                ):
                    same += 1
                else:
                    differs.append(f"{pair[0].name}: {name}")
    print(f"{same} outputs are the same", *differs, sep="\n")
    sys.exit(bool(differs))


if __name__ == "__main__":
    main()
