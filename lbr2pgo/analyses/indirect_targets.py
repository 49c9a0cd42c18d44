"""Where indirect jumps and calls went: switches, virtual calls, function pointers."""

from __future__ import annotations

import numpy as np

from lbr2pgo.analyses.cases import case_values
from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.table import DETAIL, FIGURE, SPARE, Column, Table, Unit, build
from lbr2pgo.model.branch_counts import TO
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.replay.replay import INDIRECT
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.sums import sums_at

NAME = "indirect-targets"
TITLE = "Indirect jumps and calls"

_PROMOTED = (1, 2, 3)
"""How many targets of a site a compiler may promote to direct calls."""


@dataclass(frozen=True, slots=True)
class _Sites:
    """Indirect branches and their targets, hottest site first, then hottest target first."""

    rows: I64
    """Rows of `Flow.branches`."""
    site: I64
    """For each row its site."""
    address: PlacedAddresses
    """Of each site."""
    count: I64
    """Of each site."""
    targets: I64
    """How many targets each site has."""
    rank: I64
    """For each row how many hotter targets its site has."""


def _sites(evidence: Evidence) -> _Sites:
    flow, branches = evidence.flow, evidence.flow.branches
    is_indirect = np.append(np.isin(flow.instructions.kind, INDIRECT), False)
    rows = np.flatnonzero(is_indirect[flow.branch_from] & evidence.about(branches))
    address, place = np.unique(branches.from_[rows], return_inverse=True)
    place = place.reshape(-1)
    count = branches.count[rows].astype(np.int64)
    total = sums_at(place, count, len(address))
    hottest = np.argsort(-total, kind="stable")
    position = np.empty_like(hottest)
    position[hottest] = np.arange(len(hottest))
    order = np.lexsort((branches.to[rows], -count, position[place]))
    site = position[place][order]
    targets = np.bincount(site, minlength=len(address)).astype(np.int64)
    first = np.cumsum(targets) - targets
    rank = np.arange(len(site)) - first[site]
    return _Sites(rows[order], site, address[hottest], total[hottest], targets, rank)


def indirect_targets(evidence: Evidence, top: int | None = TOP) -> tuple[Table, ...]:
    """A table of sites, and one of all their targets with shares."""
    sites = _sites(evidence)
    notes = (*evidence.branch_notes(), *evidence.line_notes())
    return _by_site(evidence, sites, top, notes), _by_target(evidence, sites, top, notes)


def _covered(evidence: Evidence, sites: _Sites, promoted: int) -> I64:
    """How often each site went to one of its hottest targets inside the image."""
    branches = evidence.flow.branches
    hot = (sites.rank < promoted) & (branches.known[sites.rows] & TO != 0)
    count = branches.count[sites.rows[hot]].astype(np.int64)
    return sums_at(sites.site[hot], count, len(sites.address))


def _by_site(evidence: Evidence, sites: _Sites, top: int | None, notes: tuple[str, ...]) -> Table:
    covered = [_covered(evidence, sites, promoted) for promoted in _PROMOTED]
    places = evidence.names.of(sites.address[:top])
    shares = [
        (
            Column(
                f"top_{promoted}_share",
                f"top {promoted}",
                Unit.SHARE,
                FIGURE if promoted == _PROMOTED[0] else DETAIL,
            ),
            (each / sites.count)[:top].tolist(),
        )
        for promoted, each in zip(_PROMOTED, covered, strict=True)
    ]
    columns = [
        (Column("kind", "kind", Unit.TEXT, FIGURE), _kinds(evidence, sites.address[:top])),
        (Column("count", "count", Unit.COUNT, FIGURE), sites.count[:top].tolist()),
        (Column("targets", "targets", Unit.COUNT, FIGURE), sites.targets[:top].tolist()),
        *shares,
        *places.columns(),
    ]
    is_code = ~_are_stubs(evidence, sites.address)
    total = int(sites.count[is_code].sum())
    covers = ", ".join(f"{each[is_code].sum() / (total or 1):.1%}" for each in covered)
    told = (
        f"Promoting the hottest {', '.join(map(str, _PROMOTED))} of each site would cover {covers} "
        f"of all {total:,} indirect jumps and calls, those of linkage tables apart.",
    ) * bool(total)
    return build(NAME, TITLE, columns, notes=(*notes, *told), found=len(sites.address))


def _are_stubs(evidence: Evidence, address: PlacedAddresses) -> Bools:
    """(n,): which jumps are those of linkage tables, which no compiler promotes."""
    regions = evidence.program.regions
    row = regions.containing(address)
    stubs: Bools = (row >= 0) & regions.is_stub[row]
    return stubs


def _kinds(evidence: Evidence, addresses: PlacedAddresses) -> list[str]:
    code = evidence.flow.instructions
    kinds = code.kind[code.index_of(addresses)]
    return ["call" if kind == Kind.INDIRECT_CALL else "jump" for kind in kinds.tolist()]


def _by_target(evidence: Evidence, sites: _Sites, top: int | None, notes: tuple[str, ...]) -> Table:
    """All targets of the hottest sites."""
    shown = sites.site < (len(sites.address) if top is None else top)
    rows, site = sites.rows[shown], sites.site[shown]
    branches = evidence.flow.branches
    count = branches.count[rows]
    from_, to = branches.from_[rows], branches.to[rows]
    source = evidence.names.of(from_)
    is_inside = branches.known[rows] & TO != 0
    target = evidence.names.of(to, is_inside, branches.file[rows])
    columns = [
        *source.columns("site_", "site "),
        (
            Column("case", "case", Unit.TEXT, FIGURE),
            case_values(evidence, from_, to),
        ),
        (Column("share", "share", Unit.SHARE, FIGURE), (count / sites.count[site]).tolist()),
        (Column("count", "count", Unit.COUNT, FIGURE), count.tolist()),
        (
            Column("mispredicted", "mispredicted", Unit.COUNT, of_processor=True),
            branches.mispredicted[rows].tolist(),
        ),
        (
            Column("prediction_unknown", "not known", Unit.COUNT, SPARE),
            branches.prediction_unknown[rows].tolist(),
        ),
        *target.columns("target_", "target "),
    ]
    title = "Targets of indirect jumps and calls"
    return build(f"{NAME}-by-site", title, columns, notes=notes, found=len(sites.rows))
