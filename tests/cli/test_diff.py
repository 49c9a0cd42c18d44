"""`lbr2pgo diff` as a user runs it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

OLD = "main:9000:10\n 1: 9000 g:10\n_ZN1a1bEi:1000:5\n 1: 1000\n"
NEW = "main:2000:10\n 1: 2000 g:10\n_ZN1a1bEi:8000:5\n 1: 8000\n"
CLUSTERS = "v1\nf main\nc0 1\n", "v1\nf main\nc0 1 2\nf g\nc0\n"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    old, new = tmp_path / "old.prof", tmp_path / "new.prof"
    old.write_text(OLD)
    new.write_text(NEW)
    return old, new


def test_what_changed_most_comes_first(command, pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    answer = command("diff", *pair)
    assert (answer.code, answer.err) == (0, "")
    assert max(map(len, answer.out.splitlines())) <= 60
    lines = answer.out.splitlines()
    assert lines[0].startswith("sample profiles by source line: 2 functions with")
    rows = [line.split()[-1] for line in lines if "%" in line and "  " in line]
    assert sorted(rows) == ["a::b", "main"]
    assert "what chance explains" in answer.out
    assert "_ZN1a1bEi" in command("diff", *pair, "--no-demangle").out


def test_the_same_profile(command, pair) -> None:
    answer = command("diff", pair[0], pair[0])
    assert answer.code == 0
    assert answer.out.startswith("sample profiles by source line: nothing changed\n")


def test_a_comment_on_a_change(command, pair) -> None:
    lines = command("diff", *pair, "--format", "markdown", "--top", "1").out.splitlines()
    assert lines[0].startswith("### sample profiles by source line: 2 functions")
    assert "**Functions, by how their share changed** (1 of 2)" in lines
    assert "| 10.0% | 80.0% | 70.0% | `a::b` |" in lines


def test_tables_for_scripts(command, pair) -> None:
    (table,) = json.loads(command("diff", *pair, "--format", "json").out)["tables"]
    assert table["name"] == "diff-functions"
    rows = list(csv.DictReader(command("diff", *pair, "--format", "csv").out.splitlines()))
    assert {row["function"]: float(row["change"]) for row in rows} == {
        row["function"]: row["change"] for row in table["rows"]
    }


def test_clusters_have_no_chance_in_them(command, tmp_path: Path) -> None:
    paths = [tmp_path / "old", tmp_path / "new"]
    for path, text in zip(paths, CLUSTERS, strict=True):
        path.write_text(text)
    answer = command("diff", *paths)
    assert "Propeller clusters: 2 functions with another share" in answer.out
    assert "what chance explains" not in answer.out


def test_profiles_of_two_kinds_are_refused(command, pair, tmp_path: Path) -> None:
    other = tmp_path / "clusters"
    other.write_text(CLUSTERS[0])
    answer = command("diff", pair[0], other)
    assert (answer.code, answer.out) == (2, "")
    assert f"{other}: is of another kind (Propeller clusters) than {pair[0]}" in answer.err
