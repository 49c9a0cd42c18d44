"""The notebooks of the documentation do what they say."""

from __future__ import annotations

import ast
import json
from typing import Any
from xml.etree import ElementTree

import pytest
from builders.recordings import TESTBINS

DOCS = TESTBINS.parent / "docs"
NOTEBOOKS = ("notebook.ipynb", "flow-graph.ipynb")


@pytest.fixture(autouse=True)
def _where_notebooks_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DOCS)


def shown_by(notebook: str) -> Any:
    """What the one cell that ends in a name shows, with all cells run in order."""
    cells = json.loads((DOCS / notebook).read_text())["cells"]
    space: dict[str, object] = {}
    found = []
    for cell in cells:
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            last = tree.body[-1]
            exec(compile(tree, "cell", "exec"), space)
            if isinstance(last, ast.Expr) and isinstance(last.value, ast.Name):
                found.append(space[last.value.id])
    (one,) = found
    return one


def test_the_report_shows_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown_by("notebook.ipynb")._repr_html_().startswith("<iframe ")
    out = capsys.readouterr().out
    assert "of instructions" in out
    assert "run " in out


def test_the_graph_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    """Every block and every edge, each in its place; and its loop is found."""
    shown = shown_by("flow-graph.ipynb")
    picture = ElementTree.fromstring(shown._repr_svg_())
    svg = "{http://www.w3.org/2000/svg}"
    boxes, width, height = picture.findall(f"{svg}rect"), 600, 640
    places = {(float(box.attrib["x"]), float(box.attrib["y"])) for box in boxes}
    assert len(places) == len(boxes) == len(shown.graph) == 7
    assert all(0 <= x <= width - 100 and 0 <= y <= height - 32 for x, y in places)
    texts = {text.text for text in picture.findall(f"{svg}text")}
    assert texts == {f"{b:#x}: {count:,}" for b, count in shown.graph.nodes(data="count")}
    titles = [path.findtext(f"{svg}title") for path in picture.findall(f"{svg}path")]
    edges = shown.graph.edges(data=True)
    assert titles == [f"{edge['kind']}: {edge['count']}" for _, _, edge in edges]
    assert "loop of 2 blocks at 0x2170" in capsys.readouterr().out


def test_every_notebook_is_run() -> None:
    assert {path.name for path in DOCS.glob("*.ipynb")} == set(NOTEBOOKS)
