"""Profiles to look at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from builders.outputs import outputs
from builders.recordings import binary, recording

from lbr2pgo.conversion import ConvertOptions, convert


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Path]]:
    """Sample profile and fdata of a shipped recording."""
    folder = tmp_path_factory.mktemp("written")

    def write(name: str) -> tuple[Path, Path]:
        samples, branches = folder / f"{name}.prof", folder / f"{name}.fdata"
        if not samples.exists():
            both = outputs(llvm=samples, fdata=branches)
            convert(ConvertOptions((recording(name),), binary(name), outputs=both))
        return samples, branches

    return write
