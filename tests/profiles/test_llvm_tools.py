from __future__ import annotations

from pathlib import Path

import pytest

from lbr2pgo.profiles.llvm_tools import last_lines, llvm_tools


def test_the_plain_name_comes_first_and_then_the_newest_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("LLVM_PROFDATA", raising=False)
    wanted = [tmp_path / f"llvm-profdata{end}" for end in ("", "-22", "-9")]
    for path in (*reversed(wanted), tmp_path / "llvm-profdata-old"):
        path.touch(mode=0o755)
    assert llvm_tools("llvm-profdata") == list(map(str, wanted))
    monkeypatch.setenv("LLVM_PROFDATA", str(wanted[2]))
    assert llvm_tools("llvm-profdata") == [str(wanted[2])]
    monkeypatch.setenv("LLVM_PROFDATA", "llvm-profdata-7")
    assert llvm_tools("llvm-profdata") == []


def test_of_what_a_tool_said_the_end_is_told() -> None:
    assert last_lines("\n".join("abcdefg") + "\n\n") == "c / d / e / f / g"
    assert last_lines(" \n") == "it said nothing"
