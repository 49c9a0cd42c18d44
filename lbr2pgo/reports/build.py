"""From files to a `Report`: which analyses run, and for which functions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isnan

import numpy as np

from lbr2pgo.analyses import (
    call_edges,
    call_stacks,
    function_view,
    gains,
    grouping,
    hot_functions,
    latency,
    outcomes,
    phases,
    registry,
    start,
)
from lbr2pgo.analyses.branch_facts import branch_facts
from lbr2pgo.analyses.call_graph import call_graph_tree
from lbr2pgo.analyses.call_stacks import Node, tree
from lbr2pgo.analyses.code_profile import NEEDS, code_profile
from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.first_look import first_look
from lbr2pgo.analyses.flow_graph import FlowGraph, hottest_regions
from lbr2pgo.analyses.latency import TimedRun
from lbr2pgo.analyses.source_view import line_figures
from lbr2pgo.analyses.table import Table
from lbr2pgo.evidence.call_stacks import CALL_STACKS, is_call_stack
from lbr2pgo.model import waterfall
from lbr2pgo.model.doubts import Doubt, counted
from lbr2pgo.model.perf_abi import WITHOUT_BRANCHES
from lbr2pgo.program.code.named_functions import find_function
from lbr2pgo.replay.processes import ProcessInputs
from lbr2pgo.reports.gather import Gathered, gather, look_for_analyses
from lbr2pgo.reports.model import (
    CallNode,
    FunctionGraph,
    FunctionView,
    GraphBlock,
    GraphEdge,
    RanFunctions,
    Report,
    TimeLine,
    Timing,
)
from lbr2pgo.reports.placed_profiles import read_inputs
from lbr2pgo.reports.source_files import Moved, SourceFiles
from lbr2pgo.reports.source_text import source_table
from lbr2pgo.reports.summary import summary
from lbr2pgo.support.addresses import (
    PlacedAddress,
    PlacedAddresses,
    placed_addresses,
    placed_array,
    shown,
    slot_of,
)
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.headway import Progress
from lbr2pgo.support.resembling import did_you_mean
from lbr2pgo.support.timings import Timings

CHARTS = 12
"""How many blocks, and how many loops, are timed for others than pages, which chart all."""


@dataclass(frozen=True, slots=True)
class ReportOptions(ProcessInputs):
    """What to read and what to show."""

    only: tuple[str, ...] = ()
    """Names of analyses and of single tables (`analyses.registry`); all if empty."""
    exact: bool = False
    """Whether a name of `only` is that of one table, and not of all that its analysis makes."""
    function: str | None = None
    """Only what concerns this function, by name or address."""
    sort: tuple[str, ...] = ()
    """Only one table, of branches grouped by these keys, see `analyses.grouping`."""
    top: int | None = TOP
    """Rows of each table; None for all."""
    views: int = 0
    """How many of the hottest functions to show, if none is asked for."""
    tables: bool = True
    """Whether to make all tables where `only` names none."""
    code: bool = False
    """Whether to gather all instructions with their frames, for exports."""
    source: bool = False
    """Whether functions are shown with their source."""
    source_dirs: tuple[Moved, ...] = ()
    """Where source files are now, see `reports.source_files`."""
    changed_source: bool = False
    """Whether source files are shown that changed since the build."""

    def __post_init__(self) -> None:
        ProcessInputs.__post_init__(self)
        for key in self.sort:
            if key not in grouping.KEYS:
                raise InputError(
                    f"there is no sort key {key}", cure=f"There are: {', '.join(grouping.KEYS)}."
                )
        for name in self.only:
            if name not in registry.TABLES:
                meant = did_you_mean(name, registry.TABLES)
                raise InputError(
                    f"there is no analysis {name}{meant}",
                    cure=f"There are: {', '.join(registry.NAMES)}.",
                )

    def wants(self, name: str) -> bool:
        """Whether an analysis is to be shown."""
        made = {registry.TABLES[table] for table in self.only}
        return not self.sort and (name in made if made else self.tables)

    def shows(self, table: str) -> bool:
        """Whether a table of a wanted analysis is to be shown."""
        names = (table,) if self.exact else (table, registry.TABLES[table])
        return not self.only or any(name in self.only for name in names)

    @property
    def shown(self) -> tuple[str, ...]:
        """Names of the analyses that are to be shown."""
        return tuple(name for name in registry.NAMES if self.wants(name))

    @property
    def asked(self) -> tuple[str, ...]:
        """Those that ask the samples: a page shows functions, whatever else it shows."""
        return (*self.shown, *((function_view.NAME,) if self.views else ()))


def make_report(
    options: ReportOptions, progress: Progress | None = None, timings: Timings | None = None
) -> Report:
    """Read, count, replay and analyse.

    Raises as `read_and_replay`, InputError for an unknown function, and EmptyProfileError where
    the recordings hold nothing of the program.
    """
    top = options.top if options.function is None else None
    also = (*(grouping.NEEDS if options.sort else ()), *(NEEDS if options.code else ()))
    timings = timings or Timings()
    asks = look_for_analyses(options.asked, top, also)
    found = read_inputs(options, progress, timings, asks)
    events = [event for source in found.sources for event in source.info.events]
    if not any(is_call_stack(event.branch_sample_type) for event in events):
        found.refuse_unfit()
    report = report_of(gather(found), options, progress, timings)
    found.program.image.file.check_unchanged()
    return report


def report_of(
    gathered: Gathered,
    options: ReportOptions,
    progress: Progress | None = None,
    timings: Timings | None = None,
) -> Report:
    """Analyse what was gathered."""
    timings = timings or Timings()
    evidence = gathered.evidence
    if options.function is not None:
        region = find_function(evidence.program, options.function)
        evidence = evidence.of_function(region)
    names = [name for name in registry.ANALYSES if options.wants(name)]
    layout = evidence.program.image.layout
    has_tree = options.wants(call_stacks.NAME) and evidence.found(CALL_STACKS) is not None
    details, name = details_of(gathered), os.path.basename(layout.path)
    made: list[Table] = []
    for done, each in enumerate(names):
        with timings.stage(f"analyse: {each}"):
            if progress is not None:
                progress(0, done / len(names))
            made += registry.run(each, evidence, options.top)
    tables = tuple(table for table in made if options.shows(table.name))
    if options.views and options.wants(outcomes.NAME):
        tables += (gains.cold_code(evidence, options.top),)
    if options.sort:
        tables = (grouping.grouped(evidence, options.sort, options.top),)
    is_whole = options.tables and not (options.only or options.sort or options.function)
    sentences = summary(evidence, tables, gathered.tallies, dict(details), name) if is_whole else ()
    with timings.stage("analyse: function"):
        views = tuple(_views(evidence, options))
    return Report(
        title=f"Branches of {name}",
        binary=layout.path,
        build_id=layout.build_id,
        profiles=tuple(map(str, options.profiles)),
        details=details,
        waterfall=waterfall.rows(gathered.tallies),
        tables=tables,
        timings=_timings(evidence, options) if options.wants(latency.NAME) else (),
        time_line=_time_line(evidence) if options.views and options.wants(phases.NAME) else None,
        start=start.start_picture(evidence)
        if options.views and options.wants(start.NAME)
        else None,
        call_tree=_call_tree(evidence.once(tree)) if has_tree else None,
        call_graph=call_graph(evidence, options),
        functions=views,
        summary=tuple(sentence.text for sentence in sentences),
        summary_places=tuple(sentence.place for sentence in sentences),
        ran=_ran(evidence) if options.views else None,
        open_function=_opener(evidence, options) if options.views else None,
        first=first_look(evidence, tables) if is_whole else (),
        named=tuple(name for name in options.only if name not in registry.NAMES),
        code=code_profile(evidence) if options.code else None,
        # What is wrong with debug information is known when all was asked for.
        notes=(*gathered.notes, *map(Doubt, counted(evidence.debug.health(), "debug information"))),
    )


def details_of(gathered: Gathered) -> tuple[tuple[str, str], ...]:
    """What the files' headers say, each different thing once."""
    facts: dict[tuple[str, str], None] = {}
    for info in gathered.infos:
        facts["format", info.format] = None
        for event in info.events:
            if event.name not in WITHOUT_BRANCHES:
                facts["event", event.name] = None
        for key, value in info.details.items():
            facts[key, value] = None
    return tuple(facts)


def _ran(evidence: Evidence) -> RanFunctions:
    table, regions = hot_functions.hot_functions(evidence, None), evidence.program.regions
    start = np.array(table.placed_column("address"), np.uint64)
    functions = regions.containing(placed_addresses(start))
    pieces = np.flatnonzero(np.isin(regions.parent, functions)).tolist()
    found: dict[int, list[tuple[int, int]]] = {int(f): [] for f in functions.tolist()}
    for piece in sorted(pieces, key=lambda piece: piece != regions.parent[piece]):
        ends = int(regions.start[piece]), int(regions.end[piece])
        found[int(regions.parent[piece])].append(ends)
    return RanFunctions(table, tuple(tuple(found[f]) for f in functions.tolist()))


def _timings(evidence: Evidence, options: ReportOptions) -> tuple[Timing, ...]:
    most = options.top if options.views else CHARTS
    asked = options.function
    blocks = latency.timed_blocks(evidence, None if asked else most)
    if asked is not None:  # a block's address puts it first
        blocks.sort(key=lambda run: shown(run.start) != asked.lower())
    loops = latency.timed_loops(evidence, most)
    return (
        *timings_of(evidence, blocks[:most], is_loop=False),
        *timings_of(evidence, loops, is_loop=True),
    )


def _time_line(evidence: Evidence) -> TimeLine | None:
    activity, found = evidence.once(phases.found_phases)
    if activity is None:
        return None
    samples = activity.samples.sum(1).tolist()

    def seconds(slices: Iterable[int]) -> tuple[float, ...]:
        return tuple((activity.begin(each) - activity.first) / 1e9 for each in slices)

    begins = (phase.slices[0] for phase in found)
    return TimeLine(seconds(range(len(samples))), tuple(samples), seconds(begins))


def timings_of(evidence: Evidence, runs: Sequence[TimedRun], *, is_loop: bool) -> Iterator[Timing]:
    """Timed blocks or loops, for charts."""
    starts = placed_array(run.start for run in runs)
    places = zip(runs, _places(evidence, starts), evidence.names.lines(starts), strict=True)
    for run, name, line in places:
        times = run.times
        yield Timing(
            name=name,
            line=line,
            placed_start=run.start,
            placed_end=run.end,
            cycles=tuple(times.cycles.tolist()),
            count=tuple(times.count.tolist()),
            missing=times.missing,
            saturated=times.saturated,
            modes=times.modes(),
            is_simulated=evidence.limits.is_simulated,
            is_loop=is_loop,
        )


def _places(evidence: Evidence, addresses: PlacedAddresses) -> Iterator[str]:
    """`function+0x12` for each."""
    regions = evidence.program.regions
    for address, region in zip(
        addresses.tolist(), regions.containing(addresses).tolist(), strict=True
    ):
        offset = address - int(regions.start[region]) if region >= 0 else 0
        name = evidence.names.region(region)
        yield f"{name}+{offset:#x}" if offset else name


def call_graph(evidence: Evidence, options: ReportOptions) -> CallNode | None:
    """For pages, which draw it."""
    is_drawn = options.views > 0 and options.function is None and options.wants(call_edges.NAME)
    root = call_graph_tree(evidence) if is_drawn else None
    return None if root is None else _call_tree(root)


def _call_tree(node: Node) -> CallNode:
    """The tree as a frozen one; built from the leaves up, since stacks may be deep."""
    done: dict[int, CallNode] = {}
    waiting = [(node, False)]
    while waiting:
        current, is_ready = waiting.pop()
        if is_ready:
            callees = tuple(done.pop(id(callee)) for callee in current.ordered())
            done[id(current)] = CallNode(current.name, current.total, current.own, callees)
        else:
            waiting.append((current, True))
            waiting += [(callee, False) for callee in current.below.values()]
    return done[id(node)]


def _views(evidence: Evidence, options: ReportOptions) -> Iterator[FunctionView]:
    if not options.wants(function_view.NAME):
        return
    files = source_files(evidence, options)
    yield from views_of(evidence, options, files, _shown_regions(evidence, options))


def _shown_regions(evidence: Evidence, options: ReportOptions) -> dict[int, float]:
    """Functions to show, and their shares: where one is, the hottest of the program's own."""
    if options.views:
        return dict(hottest_regions(evidence, options.views))
    if not (options.function or options.source or function_view.NAME in options.only):
        return {}
    start, found = evidence.program.regions.start, hottest_regions(evidence, None)
    own = [each for each in found if slot_of(PlacedAddress(start[each[0]])) == 0]
    return dict((own or found)[:1])


def _opener(evidence: Evidence, options: ReportOptions) -> Callable[[int], FunctionView | None]:
    def opened(start: int) -> FunctionView | None:
        shares, regions = dict(hottest_regions(evidence, None)), evidence.program.regions
        region = int(regions.containing(placed_array([start]))[0])
        if region < 0 or int(regions.start[region]) != start or region not in shares:
            return None
        files = source_files(evidence, options)
        return next(views_of(evidence, options, files, {region: shares[region]}))

    return opened


def source_files(evidence: Evidence, options: ReportOptions) -> SourceFiles:
    """Those that may be shown."""
    path = evidence.program.image.layout.path
    return SourceFiles(options.source_dirs, path, shows_changed=options.changed_source)


def views_of(
    evidence: Evidence, options: ReportOptions, files: SourceFiles, shares: Mapping[int, float]
) -> Iterator[FunctionView]:
    """Functions by their shares; what only pages show is left out for others."""
    views = function_view.function_views(evidence, [*shares])
    for (region, share), view in zip(shares.items(), views, strict=True):
        yield FunctionView(
            view.name,
            view.start,
            share,
            view.code,
            _graph(view.graph),
            _source(evidence, region, view.name, files) if options.source else None,
            branch_facts(evidence.of_function(region)) if options.views else (),
        )


def _source(evidence: Evidence, region: int, name: str, files: SourceFiles) -> Table:
    file, _ = evidence.program.file_of(PlacedAddress(evidence.program.regions.start[region]))
    files = replace(files, build_id=file.image.build_id)
    code = evidence.flow.instructions.address
    origins = evidence.debug.origins(code[evidence.of_function(region).rows_of(code)])
    table = source_table(name, line_figures(evidence, region), files, origins)
    return table.as_simulated(in_title=False) if evidence.limits.is_simulated else table


def _graph(graph: FlowGraph) -> FunctionGraph:
    cfg = graph.cfg
    blocks = map(
        GraphBlock, cfg.block_start.tolist(), cfg.block_end.tolist(), graph.block_count.tolist()
    )
    edges = (
        GraphEdge(source, target, function_view.kind_name(kind), count, _known(share))
        for source, target, kind, count, share in zip(
            cfg.edge_source.tolist(),
            cfg.edge_target.tolist(),
            cfg.edge_kind.tolist(),
            graph.edge_count.tolist(),
            graph.edge_share.tolist(),
            strict=True,
        )
    )
    loops = (tuple(sorted(each)) for each in cfg.loops)
    return FunctionGraph(tuple(blocks), tuple(edges), tuple(loops))


def _known(share: float) -> float | None:
    return None if isnan(share) else share
