"""Temporal profiles, with the tools that read them."""

from __future__ import annotations

import re
from pathlib import Path

from builders.fixtures import Run, Tool
from builders.recordings import PIE, RECORDING

import lbr2pgo


def test_llvm_profdata_reads_a_trace_for_each_process(tmp_path: Path, tool: Tool, run: Run) -> None:
    traces, merged = tmp_path / "app.temporal", tmp_path / "app.profdata"
    order = tmp_path / "order"
    lbr2pgo.convert([RECORDING, RECORDING], PIE, temporal=traces, startup_order=order)
    run(tool("llvm-profdata-22"), "merge", traces, "-o", merged)
    shown = run(tool("llvm-profdata-22"), "show", "--temporal-profile-traces", merged).stdout
    first, second = re.findall(r"weight=1 count=\d+\):\n((?:    .+\n)+)", shown)
    assert first == second
    named = [line for line in order.read_text().splitlines() if line[0] != "#"]
    assert sorted(first.split()) == sorted(named)


def test_traces_have_the_weights_of_their_recordings(tmp_path: Path, tool: Tool, run: Run) -> None:
    traces, merged = tmp_path / "app.temporal", tmp_path / "app.profdata"
    lbr2pgo.convert([RECORDING, RECORDING], PIE, temporal=traces, temporal_weights=(3, 20))
    run(tool("llvm-profdata-22"), "merge", traces, "-o", merged)
    shown = run(tool("llvm-profdata-22"), "show", "--temporal-profile-traces", merged).stdout
    assert re.findall(r"weight=(\d+)", shown) == ["3", "20"]


def test_llvm_profdata_finds_few_faults_in_our_order(tmp_path: Path, tool: Tool, run: Run) -> None:
    """`order` draws each trace against the order that it makes of the first ones."""
    traces, merged = tmp_path / "app.temporal", tmp_path / "app.profdata"
    lbr2pgo.convert([RECORDING] * 3, PIE, temporal=traces)
    run(tool("llvm-profdata-22"), "merge", traces, "-o", merged)
    ordered = run(tool("llvm-profdata-22"), "order", "--num-test-traces=1", merged).stdout
    names = {line for line in ordered.splitlines() if line and line[0] != "#"}
    assert {"main", "run", "next_token"} <= names
