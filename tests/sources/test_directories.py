"""Recordings that are directories."""

from __future__ import annotations

from pathlib import Path

from lbr2pgo.sources.directories import files_of


def test_files_of_threads_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("data.10", "data", "data.2", "data.old", "data.²", "other"):
        (tmp_path / name).touch()
    assert [path.name for path in files_of(tmp_path)] == ["data", "data.2", "data.10"]
    assert files_of(tmp_path / "data") == [tmp_path / "data"]
