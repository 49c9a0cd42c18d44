from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from builders.recordings import PIE, RECORDING, STATIC, STATIC_ENTRY, recorded

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.registry import output

Converted = Callable[..., Path]


@pytest.fixture(scope="session")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Recordings of one program on three hosts, each of other branches."""
    folder = tmp_path_factory.mktemp("hosts")
    loops = [[STATIC_ENTRY] * 3, [STATIC_ENTRY, (0x22A8E8, 0x22A780, 1)], [(0x22A8E8, 0x22A780, 2)]]
    paths = [folder / f"host{i}.data" for i in range(len(loops))]
    for number, (path, stack) in enumerate(zip(paths, loops, strict=True), 1):
        path.write_bytes(recorded([stack] * number))
    return paths


@pytest.fixture
def converted(tmp_path: Path) -> Converted:
    """`converted("counts", "x.npz", *recordings)`: an output of recordings of the program."""

    def make(name: str, file: str, *recordings: Path, **options: object) -> Path:
        binary = PIE if recordings[0] == RECORDING else STATIC
        path = tmp_path / file
        convert(ConvertOptions(recordings, binary, outputs=(output(name, path, **options),)))
        return path

    return make
