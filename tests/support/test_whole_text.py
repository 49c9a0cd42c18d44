from __future__ import annotations

from pathlib import Path

import pytest

from lbr2pgo.support.errors import InputError
from lbr2pgo.support.whole_text import refuse_cut_off


@pytest.mark.parametrize("text", ["", "\n", "a\nb\n"])
def test_whole_text_is_taken(text: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text(text)
    refuse_cut_off(tmp_path / "text")


@pytest.mark.parametrize("text", ["a", "a\nb"])
def test_a_last_line_without_an_end_is_cut_off(text: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text(text)
    with pytest.raises(InputError, match="the last line has no end"):
        refuse_cut_off(tmp_path / "text")
