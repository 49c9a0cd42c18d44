"""Functions of the same starts side by side, beside what LLVM does with the same traces."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import Run, Tool

from lbr2pgo.profiles.linker.balanced_partitioning import by_traces
from lbr2pgo.profiles.linker.temporal import lines_of
from lbr2pgo.support.arrays import I64

ON_A_PAGE = 16


def workloads(functions: int, different: int, seed: int) -> list[I64]:
    """Traces that share a quarter of the functions; the rest is each one's own, by turns."""
    chance = np.random.default_rng(seed)
    shuffled = chance.permutation(functions)
    common, own = shuffled[: functions // 4], shuffled[functions // 4 :]
    return [np.concatenate([common, own[number::different]]) for number in range(different)]


def by_rank(functions: int, traces: Sequence[I64]) -> I64:
    rank = np.full(functions, functions)
    for trace in traces:
        np.minimum.at(rank, trace, np.arange(len(trace)))
    return np.argsort(rank, kind="stable")


def pages(order: I64, trace: I64) -> int:
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return len(set((place[trace] // ON_A_PAGE).tolist()))


def arranged(functions: int, traces: Sequence[I64], weights: Sequence[float]) -> I64:
    first = by_rank(functions, traces)
    back = np.argsort(first)
    return first[by_traces(functions, [back[trace] for trace in traces], weights)]


def test_pages_are_no_more_than_by_llvm(tmp_path: Path, tool: Tool, run: Run) -> None:
    functions, traces = 2000, workloads(2000, 8, seed=1)
    text, merged = tmp_path / "t.temporal", tmp_path / "t.profdata"
    named = [[f"f{number}" for number in trace.tolist()] for trace in traces]
    text.write_text("".join(f"{line}\n" for line in lines_of(named, [1] * 8)))
    run(tool("llvm-profdata-22"), "merge", text, "-o", merged)
    said = run(tool("llvm-profdata-22"), "order", merged).stdout
    llvm = np.array([int(name) for name in re.findall(r"^f(\d+)$", said, re.M)])
    assert sorted(llvm.tolist()) == [*range(functions)]
    ours, ranked = arranged(functions, traces, [1] * 8), by_rank(functions, traces)
    touched = [sum(pages(order, trace) for trace in traces) for order in (ours, llvm, ranked)]
    assert touched[0] <= touched[1]
    assert touched[0] < 0.6 * touched[2]


def test_a_trace_that_counts_more_has_fewer_pages() -> None:
    traces = workloads(1200, 3, seed=2)
    traces.append(np.concatenate([trace[::3] for trace in traces]))
    light, heavy = (arranged(1200, traces, [1, 1, 1, weight]) for weight in (0.01, 100))
    assert pages(heavy, traces[3]) < pages(light, traces[3])


@pytest.mark.parametrize("functions", [0, 1, 16, 17, 100, 1000])
def test_each_function_stands_once(functions: int) -> None:
    chance = np.random.default_rng(functions)
    traces = [chance.permutation(functions)[: functions // 2] for _ in range(3)]
    assert sorted(by_traces(functions, traces, [1, 2, 3]).tolist()) == [*range(functions)]


@pytest.mark.parametrize("traces", [[], [np.arange(300)], [np.arange(299, -1, -1)] * 2])
def test_what_no_trace_tells_apart_stays_as_it_was(traces: list[I64]) -> None:
    assert by_traces(300, traces, [1] * len(traces)).tolist() == [*range(300)]


def test_functions_of_two_traces_by_turns_come_apart() -> None:
    functions = np.arange(2000)
    order = by_traces(2000, [functions[::2], functions[1::2]], [1, 1])
    assert order.tolist() == [*range(0, 2000, 2), *range(1, 2000, 2)]
