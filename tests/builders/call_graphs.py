"""Plain search for strongly connected components."""

from __future__ import annotations

from collections.abc import Sequence


def components(graph: Sequence[Sequence[int]]) -> list[list[int]]:
    """As LLVM's scc_iterator gives them, given the targets of each node."""
    found: list[list[int]] = []
    number: dict[int, int] = {}
    done: set[int] = set()
    waiting: list[int] = []

    def visit(node: int) -> int:
        lowest = number[node] = len(number)
        waiting.append(node)
        for target in graph[node]:
            if target not in number:
                lowest = min(lowest, visit(target))
            elif target not in done:
                lowest = min(lowest, number[target])
        if lowest == number[node]:
            at = waiting.index(node)
            found.append(waiting[at:][::-1])
            done.update(waiting[at:])
            del waiting[at:]
        return lowest

    for node in range(len(graph)):
        if node not in number:
            visit(node)
    return found
