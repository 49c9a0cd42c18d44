from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest
from builders.fixtures import ROOT, Run, Tool

from lbr2pgo.pgo.flags import KEPT_CALLS


def test_calls_that_were_several_could_have_several_probes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, tool: Tool,
    run: Run,
) -> None:  # fmt: skip
    builds = {"merged": (), "kept": KEPT_CALLS}
    for name, flags in builds.items():
        source = ROOT / "tests/programs/alike_calls.cpp"
        wanted = ("-O2", "-g1", "-shared", "-fPIC", "-fpseudo-probe-for-profiling", *flags)
        run(tool("clang++-22"), *wanted, source, "-o", tmp_path / name)
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setattr(sys, "argv", ["lost_probes.py", *map(str, map(tmp_path.joinpath, builds))])
    import_module("lost_probes").main()
    assert capsys.readouterr().out.splitlines()[1:] == [
        "    2 with a probe, of which are left: one 0 (the right one: 0), several 2, none 0; "
        "in no known function: 0",
        "    3 without a probe, of which are left: one 0, several 3, none 0; "
        "in no known function: 0",
    ]
    monkeypatch.setattr(sys, "argv", ["lost_probes.py", str(tmp_path / "kept")])
    import_module("lost_probes").main()
    assert "9 with a probe, of which are left: one 9 (the right one: 9)" in capsys.readouterr().out
