"""C++ names in a report: analyses keep linkage names, people read demangled ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import is_

from lbr2pgo.analyses.branch_facts import BranchFacts
from lbr2pgo.analyses.code_profile import CodeFrame
from lbr2pgo.analyses.table import Column, Table, Unit, Value
from lbr2pgo.program.demangle import demangled, demangled_text
from lbr2pgo.reports.model import CallNode, FunctionView, Report

_NAMES = (Unit.FUNCTION, Unit.TEXT)


def readable(report: Report, named: Callable[[str], str] = demangled) -> Report:
    """The same report with C++ names demangled, by `named`, in all that is shown."""
    ran, code = report.ran, report.code

    def text(words: str) -> str:
        return demangled_text(words, named)

    def frame(of_code: CodeFrame) -> CodeFrame:
        return replace(of_code, function=text(of_code.function))

    def tree(root: CallNode | None) -> CallNode | None:
        return root and _tree(root, named)

    return replace(
        report,
        tables=tuple(readable_table(table, named) for table in report.tables),
        timings=tuple(replace(t, name=text(t.name)) for t in report.timings),
        call_tree=tree(report.call_tree),
        call_graph=tree(report.call_graph),
        call_graph_before=tree(report.call_graph_before),
        ran=ran and replace(ran, table=readable_table(ran.table, named)),
        functions=tuple(readable_view(view, named) for view in report.functions),
        code=code and replace(code, frames=tuple(map(frame, code.frames))),
        summary=tuple(map(text, report.summary)),
    )


def readable_view(view: FunctionView, named: Callable[[str], str] = demangled) -> FunctionView:
    """The same function with C++ names demangled, by `named`."""
    return replace(
        view,
        name=named(view.name),
        code=readable_table(view.code, named),
        # Its text is the user's own, in which names are as they were written.
        source=view.source and replace(view.source, title=demangled_text(view.source.title, named)),
        branches=tuple(_branch(each, named) for each in view.branches),
    )


def _branch(branch: BranchFacts, named: Callable[[str], str]) -> BranchFacts:
    names = [named(each.function) for each in branch.targets]
    if all(name == each.function for name, each in zip(names, branch.targets, strict=True)):
        return branch
    pairs = zip(branch.targets, names, strict=True)
    return replace(branch, targets=tuple(replace(each, function=name) for each, name in pairs))


def cpp_names(report: Report) -> dict[str, str]:
    """The demangled name of each linkage name in a report that has one, ordered."""
    names = {name for name in _names(report) if isinstance(name, str)}
    return {name: text for name in sorted(names) if (text := demangled(name)) != name}


def _names(report: Report) -> Iterator[Value]:
    for table in report.tables:
        for column in table.columns:
            if column.kind is Unit.FUNCTION:
                yield from table.column(column.name)
    yield from (view.name for view in report.functions)
    if report.call_tree is not None:
        yield from (node.name for node in report.call_tree.nodes())


def readable_table(table: Table, named: Callable[[str], str] = demangled) -> Table:
    """The same table with C++ names demangled, by `named`."""

    def text(column: Column, values: tuple[Value, ...]) -> tuple[Value, ...]:
        if column.kind not in _NAMES or not any(isinstance(v, str) and "_Z" in v for v in values):
            return values
        return tuple(demangled_text(v, named) if isinstance(v, str) else v for v in values)

    columns = [*zip(*table.placed_rows, strict=True)]
    texts = [*map(text, table.columns, columns)]
    is_same = all(map(is_, texts, columns))
    rows = table.placed_rows if is_same else tuple(zip(*texts, strict=True))
    return replace(table, title=demangled_text(table.title, named), placed_rows=rows)


def _tree(root: CallNode, named: Callable[[str], str]) -> CallNode:
    """Built from the leaves up, since stacks may be deep."""
    done: dict[int, CallNode] = {}
    for node in reversed(list(root.nodes())):
        callees = tuple(done.pop(id(callee)) for callee in node.callees)
        done[id(node)] = CallNode(named(node.name), node.total, node.own, callees)
    return done[id(root)]
