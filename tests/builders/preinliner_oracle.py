"""Contexts that are merged or inlined, found plainly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

WAS_INLINED, SHOULD_BE_INLINED = 1, 2


@dataclass
class Samples:
    """What was counted in one context, or in several that were merged."""

    total: int
    head: int
    attributes: int
    lines: dict[int, int]
    calls: dict[tuple[int, int], int] = field(default_factory=dict)
    is_inlined: bool = False
    is_merged: bool = False

    def entries(self) -> int:
        """How often the function was entered."""
        first = self.lines[min(self.lines)] if self.lines else 0
        return self.head or first or int(self.total > 0)

    def add(self, other: Samples) -> None:
        """Take another context's samples over."""
        self.total += other.total
        self.head += other.head
        self.attributes |= other.attributes & SHOULD_BE_INLINED
        other.is_merged = True
        for mine, theirs in ((self.lines, other.lines), (self.calls, other.calls)):
            for key, count in theirs.items():
                mine[key] = mine.get(key, 0) + count  # type: ignore[index, call-overload]


@dataclass
class Node:
    """A function at a location of its parent."""

    function: int
    location: int
    parent: Node | None = None
    samples: Samples | None = None
    children: dict[tuple[int, int], Node] = field(default_factory=dict)

    def hang(self, parent: Node) -> None:
        """Become a child."""
        self.parent = parent
        parent.children[self.location, self.function] = self

    def unhang(self) -> None:
        """Leave the parent."""
        assert self.parent is not None
        del self.parent.children[self.location, self.function]

    def below(self) -> Iterator[Node]:
        """This node and all below it."""
        yield self
        for child in self.children.values():
            yield from child.below()


def inline(
    root: Node, order: Sequence[int], sizes: Mapping[int, int], cold: int, hot: int
) -> dict[tuple[int, ...], tuple[int, int, int]]:
    """Total, head and attributes by the path that is left: functions and locations in turn."""
    contexts = {  # in the order that they had before any was moved
        function: [n.samples for n in root.below() if n.function == function and n.samples]
        for function in order
    }
    for function in order:
        base = merge_contexts(root, function, contexts[function])
        waiting = [base] if base is not None and base.samples is not None else []
        while waiting:
            caller = waiting.pop()
            for node in caller.children.values():
                if node.samples is not None and is_worth_it(node, caller, sizes, cold, hot):
                    node.samples.is_inlined = True
                    node.samples.attributes |= SHOULD_BE_INLINED
                    waiting.append(node)
    return {
        path_of(node): (node.samples.total, node.samples.head, node.samples.attributes)
        for node in root.below()
        if node.samples is not None
    }


def merge_contexts(root: Node, function: int, contexts: Sequence[Samples]) -> Node | None:
    """The function without callers, with all contexts of it that were not inlined."""
    for samples in contexts:
        if samples.is_inlined or samples.is_merged:
            continue
        node = next(each for each in root.below() if each.samples is samples)
        base = root.children.get((0, function))
        if node is base:
            continue
        node.unhang()
        if base is None:
            node.location = 0
            node.hang(root)
        else:
            merge(node, base)
    return root.children.get((0, function))


def merge(source: Node, target: Node) -> None:
    """Merge a node, and all below it."""
    if source.samples is not None and target.samples is not None:
        target.samples.add(source.samples)
    elif source.samples is not None:
        target.samples = source.samples
    for key, child in source.children.items():
        if key in target.children:
            merge(child, target.children[key])
        else:
            child.hang(target)


def is_worth_it(node: Node, caller: Node, sizes: Mapping[int, int], cold: int, hot: int) -> bool:
    """Whether it is inlined, if the caller may still grow."""
    assert node.samples is not None
    assert caller.samples is not None
    called = caller.samples.calls.get((node.location, node.function), 0)
    count = max(called, node.samples.entries())
    if count <= cold:
        return False
    hotness = min((count - cold) / (hot - cold), 1) if hot > cold else 1
    threshold = int(1500 * hotness * 100) + 1
    if node.samples.attributes & WAS_INLINED:
        threshold *= 100
    elif node.samples.total >= 300 * (count + 1):
        return False
    if path_of(caller)[1::2].count(node.function) > 1:
        return False
    return sizes[node.function] < threshold


def path_of(node: Node) -> tuple[int, ...]:
    """Functions from the outermost on, each after the location at which it was called."""
    if node.parent is None:
        return ()
    return (*path_of(node.parent), node.location, node.function)
