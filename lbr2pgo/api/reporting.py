"""What recordings and profiles show: reports, what changed, and graphs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Unpack

from lbr2pgo.api.keywords import (
    ProcessKeywords,
    binaries_of,
    process_options,
    profiles_of,
    source_options,
)
from lbr2pgo.support.arguments import (
    Paths,
    optional_path,
    path_of,
    paths_of,
    refuse_unknown,
    several,
)
from lbr2pgo.support.output import PathLike

if TYPE_CHECKING:
    import networkx as nx

    from lbr2pgo.analyses.evidence import Evidence
    from lbr2pgo.reports.build import ReportOptions
    from lbr2pgo.reports.notebook import NotebookReport
    from lbr2pgo.reports.profile_diff import ProfileDiff


def report(
    profiles: Paths,
    binary: Paths | None = None,
    *,
    only: str | Iterable[str] = (),
    sort: str | Iterable[str] = (),
    function: str | None = None,
    source: bool = False,
    functions: int = 0,
    top: int | None = 20,
    **how: Unpack[ProcessKeywords],
) -> NotebookReport:
    """Analyse recordings of one process; raises as `convert`.

    `binary` names the program, and libraries if need be; others that it had mapped are taken where
    they are found, in a `sysroot` or on this machine, unless there are to be `no_libraries`.
    `only` names analyses or tables, `sort` makes one table of branches, grouped by these keys,
    `function` is shown alone, and so many `functions` with their code; `top` is how many rows a
    table has at most (None: all).
    """
    from lbr2pgo.reports.making import make_any_report
    from lbr2pgo.reports.notebook import NotebookReport

    options = _report_options(
        profiles, binary, how, only=several(only), sort=several(sort), function=function,
        source=source or functions > 0, views=functions, top=top or None,
    )  # fmt: skip
    return NotebookReport.of(make_any_report(options))


def compare(
    profiles: Paths,
    against: Paths,
    binary: Paths | None = None,
    *,
    old_binary: PathLike | None = None,
    top: int | None = 20,
    **how: Unpack[ProcessKeywords],
) -> NotebookReport:
    """Tell what changed between recordings, as `lbr2pgo report --against` does.

    `against` are the old ones, of `old_binary`, if that is another build. The others as `report`
    has them; raises as that.
    """
    from lbr2pgo.reports.making import make_any_report
    from lbr2pgo.reports.notebook import NotebookReport

    options = _report_options(profiles, binary, how, top=top or None)
    old = optional_path(old_binary, "old_binary")
    return NotebookReport.of(make_any_report(options, paths_of(against, "against"), old))


def diff(old: PathLike, new: PathLike, *, top: int | None = 20, all: bool = False) -> ProfileDiff:
    """Tell what changed between two written profiles of one kind, as `lbr2pgo diff` does.

    Tables have at most `top` rows (None: all). What chance explains is left out, unless `all` are
    asked for. Raises InputError for what is no written profile, or of another kind.
    """
    from lbr2pgo.reports.profile_diff import diff_profiles

    return diff_profiles(path_of(old, "old"), path_of(new, "new"), top or None, everything=all)


def _report_options(
    profiles: Paths, binary: Paths | None, how: ProcessKeywords, **shown: Any
) -> ReportOptions:
    from lbr2pgo.reports.build import ReportOptions

    return ReportOptions(**_inputs(profiles, binary, how), **source_options(how), **shown)


def flow_graph(
    profiles: Paths, binary: Paths | None, function: str, **how: Unpack[ProcessKeywords]
) -> nx.DiGraph:
    """Give a function's control-flow graph with what the recordings tell of it.

    Arguments are those of `report`; `function` is a linkage or C++ name, or an address (`0x…`).
    Nodes are blocks, by their address in the file: `address`, `end` (the first one behind),
    `is_entry`, `lines` and `instructions` (tuples of texts), `count` (executions seen), and
    `cycles` (trimmed mean of the times when it alone ran between two taken branches).
    Edges have `kind` (`fallthrough`, `taken`, `jump`, `indirect`; `fallthrough+taken` where a
    branch leads to the block behind it), `count`, `mispredicted`, and `probability` of being gone
    from the source's end, with its interval, `probability_low` and `probability_high`.
    The graph has `function`, `file` and `notes`, which say what can't be known: that is left out.

    Raises as `convert`, and InputError for an unknown function.
    """
    from lbr2pgo.analyses import function_view
    from lbr2pgo.analyses.flow_network import flow_network
    from lbr2pgo.program.code.named_functions import find_function

    evidence = _evidence(_inputs(profiles, binary, how), function_view.NAME)
    return flow_network(evidence, find_function(evidence.program, function))


def call_graph(
    profiles: Paths, binary: Paths | None = None, **how: Unpack[ProcessKeywords]
) -> nx.DiGraph:
    """Give the functions that ran or were called, and who called whom.

    Arguments are those of `report`. Nodes are functions, by name; where several share one, file
    and address are part of it, and what lies in a file outside stands for that in brackets.
    They have `function`, `file`, `address` and `line`, and the function's own `executed`
    (instructions), `branches` (taken), `mispredicted` and `cycles`. Edges have `count`, how many of
    these were `indirect` and `tail` calls, and `mispredicted`, if some were indirect: of those.
    The graph has `file` and `notes`, which say what can't be known: that is left out.

    Raises as `convert`.
    """
    from lbr2pgo.analyses import call_edges, hot_functions
    from lbr2pgo.analyses.call_network import call_network

    inputs = _inputs(profiles, binary, how)
    return call_network(_evidence(inputs, call_edges.NAME, hot_functions.NAME))


def _evidence(inputs: dict[str, Any], *analyses: str) -> Evidence:
    """What recordings tell these analyses."""
    from lbr2pgo.replay.processes import ProcessInputs
    from lbr2pgo.reports.gather import gather, look_for_analyses
    from lbr2pgo.reports.placed_profiles import read_inputs

    found = read_inputs(ProcessInputs(**inputs), asks=look_for_analyses(analyses))
    found.refuse_nothing()
    return gather(found).evidence


def _inputs(profiles: Paths, binary: Paths | None, given: ProcessKeywords) -> dict[str, Any]:
    refuse_unknown(given, ProcessKeywords)
    first, others = binaries_of(binary)
    return {
        **process_options(given),
        "profiles": profiles_of(profiles), "binary": first, "binaries": others,
    }  # fmt: skip
