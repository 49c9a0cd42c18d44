"""The notebook of the documentation does what it says."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from builders.recordings import TESTBINS

NOTEBOOK = TESTBINS.parent / "docs" / "notebook.ipynb"


def test_every_cell_runs_and_the_report_shows_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(NOTEBOOK.parent)
    cells = json.loads(Path(NOTEBOOK).read_text())["cells"]
    space: dict[str, object] = {}
    shown = []
    for cell in cells:
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            last = tree.body[-1]
            exec(compile(tree, "cell", "exec"), space)
            if isinstance(last, ast.Expr) and isinstance(last.value, ast.Name):
                shown.append(space[last.value.id])
    (report,) = shown
    assert report._repr_html_().startswith("<iframe ")  # type: ignore[attr-defined]
    out = capsys.readouterr().out
    assert "of instructions" in out
    assert "run " in out
