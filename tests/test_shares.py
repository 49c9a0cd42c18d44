"""The table of docs/notes/which-profile.md, of figures that were made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


def test_what_is_best_is_chosen_on_one_run_and_told_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import shares

    figures = {
        "plain": [[1000, 100], [2000, 200]], "instrumented": [[900, 80], [1800, 160]],
        # The best of the run that chooses, and worse than the other one on the last.
        "lines": [[800, 70], [1900, 180]], "probes": [[850, 75], [1700, 140]],
    }  # fmt: skip
    alone = {name: each[-1:] for name, each in figures.items()}
    for name, each in (("two", figures), ("one", alone)):
        (tmp_path / name).mkdir()
        (tmp_path / name / shares.FIGURES).write_text(json.dumps(each))
    both, two = ([tmp_path / name for name in names] for names in (("two", "one"), ("two",)))
    assert list(shares.rows(two, shares.KINDS)) == [
        ["lines", "50% / 50%", "50% / 50%"],
        ["probes", "150% / 150%", "150% / 150%"],
        [shares.SEARCH, "50% / 50%", "50% / 50%"],
    ]
    assert list(shares.rows(both, shares.KINDS))[-1] == [shares.SEARCH, "50% / 50%", "", ""]
