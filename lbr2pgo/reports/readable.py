"""C++ names in a report: analyses keep linkage names, people read demangled ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lbr2pgo.analyses.branch_facts import BranchFacts
from lbr2pgo.analyses.table import Table, Unit, Value
from lbr2pgo.program.demangle import demangled, demangled_text
from lbr2pgo.reports.model import CallNode, FunctionView, Report

_NAMES = (Unit.FUNCTION, Unit.TEXT)


def readable(report: Report) -> Report:
    """The same report with C++ names demangled in tables, charts, the tree and functions."""
    ran = report.ran
    return replace(
        report,
        tables=tuple(map(readable_table, report.tables)),
        timings=tuple(replace(t, name=demangled_text(t.name)) for t in report.timings),
        call_tree=None if report.call_tree is None else _tree(report.call_tree),
        call_graph=None if report.call_graph is None else _tree(report.call_graph),
        call_graph_before=report.call_graph_before and _tree(report.call_graph_before),
        ran=ran and replace(ran, table=readable_table(ran.table)),
        functions=tuple(map(readable_view, report.functions)),
        summary=tuple(map(demangled_text, report.summary)),
    )


def readable_view(view: FunctionView) -> FunctionView:
    """The same function with C++ names demangled."""
    return replace(
        view,
        name=demangled(view.name),
        code=readable_table(view.code),
        # Its text is the user's own, in which names are as they were written.
        source=view.source and replace(view.source, title=demangled_text(view.source.title)),
        branches=tuple(map(_branch, view.branches)),
    )


def _branch(branch: BranchFacts) -> BranchFacts:
    targets = (replace(each, function=demangled(each.function)) for each in branch.targets)
    return replace(branch, targets=tuple(targets))


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


def readable_table(table: Table) -> Table:
    """The same table with C++ names demangled."""
    is_name = [column.kind in _NAMES for column in table.columns]
    rows = (
        tuple(
            demangled_text(value) if named and isinstance(value, str) else value
            for named, value in zip(is_name, row, strict=True)
        )
        for row in table.placed_rows
    )
    return replace(table, title=demangled_text(table.title), placed_rows=tuple(rows))


def _tree(root: CallNode) -> CallNode:
    """Built from the leaves up, since stacks may be deep."""
    done: dict[int, CallNode] = {}
    for node in reversed(list(root.nodes())):
        callees = tuple(done.pop(id(callee)) for callee in node.callees)
        done[id(node)] = replace(node, name=demangled(node.name), callees=callees)
    return done[id(root)]
