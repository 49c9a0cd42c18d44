from __future__ import annotations

from pathlib import Path

import pytest

from lbr2pgo.build.post_link import find_bolt


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put an empty program into the only folder of PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("LLVM_BOLT", raising=False)

    def put(name: str) -> str:
        path = tmp_path / name
        path.touch(mode=0o755)
        return str(path)

    return put


def test_without_any_there_is_none(place) -> None:
    place("llvm-bolt-heatmap")
    assert find_bolt() is None


def test_the_newest_of_several_versions_is_taken(place) -> None:
    newest = place("llvm-bolt-22")
    place("llvm-bolt-9")
    assert find_bolt() == newest


def test_the_plain_name_comes_first_and_the_environment_before_it(place, monkeypatch) -> None:
    numbered = place("llvm-bolt-22")
    plain = place("llvm-bolt")
    assert find_bolt() == plain
    monkeypatch.setenv("LLVM_BOLT", "llvm-bolt-22")
    assert find_bolt() == numbered
    monkeypatch.setenv("LLVM_BOLT", "llvm-bolt-9")
    assert find_bolt() is None
