"""What networkx would take where graphs are our own loops: times as long, on random call graphs.

The answers are compared, too. Components of calls lead `llvm.contexts.preinliner`, tail calls are
followed in `evidence.contexts.known_calls`, and places that flow as one are merged in
`replay.inference.network`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from time import process_time
from typing import TypeVar

import networkx as nx
import numpy as np
from lbr2pgo.profiles.llvm.contexts._context_keys import strong_components

from lbr2pgo.evidence.contexts.known_calls import KnownCalls
from lbr2pgo.replay.inference._min_cost_flow import merged

FUNCTIONS, CALLS_OF_EACH, NEAR = 50_000, 3, 100
TAIL_CALLS = FUNCTIONS // 2
ROUNDS = 3

T = TypeVar("T")


def seconds(task: Callable[[], T]) -> tuple[float, T]:
    """CPU time of the quickest run, and what it gave."""
    times = []
    for _ in range(ROUNDS):
        start = process_time()
        found = task()
        times.append(process_time() - start)
    return min(times), found


def random_calls(number: int) -> np.ndarray:
    """Pairs (k, 2) of functions near each other, sorted, each once."""
    random = np.random.default_rng(1)
    source = random.integers(0, FUNCTIONS, number)
    target = (source + random.integers(-NEAR // 10, NEAR, number)).clip(0, FUNCTIONS - 1)
    return np.unique(np.column_stack((source, target)), axis=0)


def graph_of(pairs: np.ndarray, kind: type = nx.DiGraph) -> nx.Graph:
    """As networkx has it."""
    graph = kind()
    graph.add_nodes_from(range(FUNCTIONS))
    graph.add_edges_from(pairs.tolist())
    return graph


def components(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Functions by the circle in which they call each other, and the number of each one's."""
    offsets = np.searchsorted(pairs[:, 0], np.arange(FUNCTIONS + 1))
    return strong_components(offsets, np.ascontiguousarray(pairs[:, 1]))


def ends(pairs: np.ndarray) -> list[frozenset[int]]:
    """What each function may end in."""
    calls = KnownCalls.__new__(KnownCalls)  # without a program to read
    calls._jumps = {function: set() for function in range(FUNCTIONS)}
    for source, target in pairs.tolist():
        calls._jumps[source].add(target)
    return [calls._with_jumps(function) for function in range(FUNCTIONS)]


def ends_by_networkx(pairs: np.ndarray) -> list[frozenset[int]]:
    """The same."""
    graph = graph_of(pairs)
    return [frozenset({f} | nx.descendants(graph, f)) for f in range(FUNCTIONS)]


def groups(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places by what pairs connect, and the number of each one's group."""
    label = merged(FUNCTIONS, *map(np.ascontiguousarray, pairs.T))
    order = np.argsort(label, kind="stable")
    return order, label[order]


def sets(found: tuple[np.ndarray, np.ndarray]) -> set[frozenset[int]]:
    """Groups as networkx gives them."""
    members, group = found
    return set(map(frozenset, np.split(members, np.flatnonzero(np.diff(group)) + 1)))


def main() -> None:
    """Print a line of each."""
    calls, tails = random_calls(FUNCTIONS * CALLS_OF_EACH), random_calls(TAIL_CALLS)
    tasks = (
        ("components of calls", lambda: components(calls), sets,
         lambda: list(nx.strongly_connected_components(graph_of(calls)))),
        ("followed tail calls", lambda: ends(tails), set, lambda: ends_by_networkx(tails)),
        ("merged places", lambda: groups(tails), sets,
         lambda: list(nx.connected_components(graph_of(tails, nx.Graph)))),
    )  # fmt: skip
    for name, ours, as_sets, theirs in tasks:
        (own, found), (other, expected) = seconds(ours), seconds(theirs)
        assert as_sets(found) == set(map(frozenset, expected)), name
        print(f"{name}: {own:.4f} s, networkx {other:.3f} s, {other / own:.1f} times as long")
    code = "import sys, time, numpy; start = time.process_time(); import networkx; "
    command = [sys.executable, "-c", code + "print(time.process_time() - start)"]
    times = [float(subprocess.check_output(command)) for _ in range(ROUNDS)]
    print(f"import networkx: {min(times):.3f} s")


if __name__ == "__main__":
    main()
