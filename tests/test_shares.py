"""Tables of docs/notes/which-profile.md, of figures that were made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


def test_what_is_best_is_chosen_on_one_run_and_told_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import shares
    import which_profile

    figures = {
        "plain": [[1000, 100], [2000, 200]], "instrumented": [[900, 80], [1800, 160]],
        # The best of the run that chooses, and worse than the other one on the last.
        "lines": [[800, 70], [1900, 180]], "probes": [[850, 75], [1700, 140]],
    }  # fmt: skip
    alone = {name: each[-1:] for name, each in figures.items()}
    sizes = {"plain": 100, "instrumented": 80, "instrumented+bolt": 160, "lines": 120,
             "lines+bolt": 200, "probes": 110, "gcc": 1, "gcc-afdo": 2}  # fmt: skip
    for name, each in (("two", figures), ("one", alone)):
        (tmp_path / name).mkdir()
        (tmp_path / name / shares.FIGURES).write_text(json.dumps(each))
        (tmp_path / name / "sizes.json").write_text(json.dumps(sizes))
        sizes = {"plain": 100, "lines": 140}
    builds = which_profile.Builds(which_profile.Bench(tmp_path / "two", (), (), (), ()))
    assert which_profile.row("lines", builds, ["lines", "instrumented"]) == [0.95, 0.9, 1.2, 1.5]
    two, one = (shares.program_in(tmp_path / name) for name in ("two", "one"))
    assert list(shares.rows([two], shares.KINDS)) == [
        ["lines", "50% / 50%", "50% / 50%"],
        ["probes", "150% / 150%", "150% / 150%"],
        [shares.SEARCH, "50% / 50%", "50% / 50%"],
    ]
    assert list(shares.rows([two, one], shares.KINDS))[-1] == [shares.SEARCH, "50% / 50%", "", ""]
    kinds = [*shares.KINDS, "lines+bolt"]
    assert list(shares.rows([two, one], kinds, shares.code_of, "{:.2f}")) == [
        ["lines", "1.20 / 1.50", "1.40 / -", "1.30 / 1.50"],
        ["probes", "1.10 / 1.38", "", ""],
        ["lines+bolt", "2.00 / 1.25", "", ""],
        [shares.SEARCH, "1.20 / 1.50", "", ""],
    ]
