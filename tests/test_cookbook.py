"""docs/cookbook.md: every recipe runs as it stands."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from builders.recordings import PIE, RECORDING

PAGE = Path(__file__).parents[1] / "docs" / "cookbook.md"
RECIPES = dict(re.findall(r"^## (.+?)\n.*?```python\n(.*?)```", PAGE.read_text(), re.M | re.S))


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_runs(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(RECORDING, tmp_path / "perf.data")
    shutil.copy(PIE, tmp_path / "app")
    monkeypatch.chdir(tmp_path)
    exec(compile(RECIPES[title], title, "exec"), {"__name__": "__main__"})
    written = set(re.findall(r"app\.\w+(?=[\"'])", RECIPES[title]))
    assert all((tmp_path / name).stat().st_size for name in written)


def test_every_title_has_a_recipe() -> None:
    assert len(RECIPES) == PAGE.read_text().count("\n## ") >= 7
