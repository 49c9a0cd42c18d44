"""The second pass: it drives whatever analyses ask for, and knows none of it by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders.evidence import gather_sources, program, source
from builders.sources import Sample

from lbr2pgo.analyses import registry
from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.hot_branches import hot_branches
from lbr2pgo.analyses.latency import latency
from lbr2pgo.analyses.mispredictions import mispredictions
from lbr2pgo.analyses.table import Column, Table, Unit
from lbr2pgo.evidence.collector import Finding, Pass, Samples
from lbr2pgo.evidence.cycle_counts import CYCLES
from lbr2pgo.model.branch_counts import BranchCounts, aggregate
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import SourceInfo
from lbr2pgo.sources.registers.dump_source import DumpSource

FROM, TO, TOS = 0x680, 0x6C0, 0x1C9
BACK, FORWARD = (0x1016, 0x1005), (0x1006, 0x1010)


class DepthCollector:
    """How often stacks had how many entries."""

    def __init__(self, known: Pass) -> None:
        self.depths = np.zeros(9, np.int64)

    def add(self, samples: Samples) -> None:
        self.depths += np.bincount(np.diff(samples.batch.offsets), minlength=9)

    def merge(self, other: DepthCollector) -> None:
        self.depths += other.depths

    def result(self) -> list[int]:
        return self.depths.tolist()


DEPTHS = Finding("depths", DepthCollector)


class Counts:
    """A source that holds counts already: none."""

    info = SourceInfo(path="counts", format="test")

    def counts(self, layout: ImageLayout) -> BranchCounts:
        none = np.empty(0, np.uint64)
        return aggregate(none, none, none, none.astype(np.uint8), none, none)

    def health(self) -> dict[str, int]:
        return {}


def depths(found: Evidence, top: int | None) -> Table:
    rows = tuple((n, count) for n, count in enumerate(found.found(DEPTHS) or ()) if count)
    return Table("depths", "Depths", (Column("depth", "", Unit.COUNT),) * 2, rows)


def test_a_new_analysis_gets_what_it_asks_the_samples_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its collector, and its row of the registry, are all that there is to write."""
    monkeypatch.setitem(registry.ANALYSES, "depths", registry.Analysis(depths, (DEPTHS,)))
    sources = [source(Sample([BACK] * 2), Sample([BACK] * 3)), source(Sample([FORWARD] * 3))]
    found = gather_sources(sources, program(), ["depths"])
    (table,) = registry.run("depths", found.evidence, None)
    assert table.rows == ((2, 1), (3, 2))


def test_what_nobody_asked_for_is_not_collected() -> None:
    found = gather_sources([source(Sample([BACK, FORWARD]))], program(), ["latency"]).evidence
    assert latency(found)
    with pytest.raises(KeyError):
        hot_branches(found)
    assert found.found(CYCLES) is not None


@pytest.mark.parametrize("name", registry.ANALYSES)
def test_an_analysis_asks_for_all_that_it_looks_at(name: str) -> None:
    found = gather_sources([source(Sample([BACK, FORWARD, BACK]))], program(), [name])
    assert registry.run(name, found.evidence, None)


@pytest.mark.parametrize("name", registry.ANALYSES)
def test_two_sources_tell_what_one_tells_that_holds_both(name: str) -> None:
    samples = [Sample([BACK, (*FORWARD, 7 << 4), BACK]), Sample([(0x1018, 0x1050)] * 2)]
    code = program()
    apart, together = (
        gather_sources(sources, code).evidence
        for sources in ([source(sample) for sample in samples], [source(*samples)])
    )
    assert registry.run(name, apart, None) == registry.run(name, together, None)


def test_counts_beside_samples_leave_spread_unknown() -> None:
    recorded = source(Sample([BACK, FORWARD]))
    assert gather_sources([recorded], program()).evidence.spread is not None
    found = gather_sources([recorded, Counts()], program()).evidence
    assert found.limits.has_samples
    assert found.spread is None
    alone = gather_sources([Counts()], program()).evidence
    assert alone.found(CYCLES) is None


def registers(of: Mapping[int | str, int]) -> str:
    """A dump: a line for each."""
    return "".join(
        f"{n:#x} {v:#x}\n" if isinstance(n, int) else f"{n} {v:#x}\n" for n, v in of.items()
    )


def ring(depth: int) -> str:
    """A loop's, as Nehalem and later keep it, without INFO registers."""
    entries = {base + i: BACK[base == TO] for base in (FROM, TO) for i in range(depth)}
    return registers({TOS: 0, **entries})


def records(control: int) -> str:
    """The same loop's, as BRBE keeps it: valid, of user code, with 9 cycles."""
    words = {"SRC": BACK[0], "TGT": BACK[1], "INF": 3 | 9 << 32}
    kept = {f"BRB{kind}{i}_EL1": word for kind, word in words.items() for i in range(8)}
    return registers({**kept, "BRBCR_EL1": control})


def evidence_of_dump(path: Path, content: str) -> Evidence:
    """What a dump tells of the program, which is for x86-64."""
    path.write_text(content)
    dump = open_source(path)
    assert isinstance(dump, DumpSource)
    here = replace(dump, info=replace(dump.info, machine=None))
    return gather_sources([here], program()).evidence


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (records(1 | 1 << 3), "the MPRED bit of BRBCR_EL1 or BRBCR_EL2 was 0"),
        (ring(32), "dump MSR_LBR_INFO_0 (0xdc0) and those behind it, too"),
        (ring(16), "dump IA32_PERF_CAPABILITIES (0x345)"),
        (ring(16) + "0x345 0x1\n", "LBRs of this processor do not say"),
    ],
    ids=["brbe", "no-info", "no-capabilities", "old"],
)
def test_each_cause_of_no_predictions_has_its_sentence(
    tmp_path: Path, content: str, reason: str
) -> None:
    found = evidence_of_dump(tmp_path / "dump.txt", content)
    (told,) = found.limits.no_predictions
    assert reason in told
    assert mispredictions(found)[0].notes[-1] == told


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (records(1 | 1 << 4), "the CC bit of BRBCR_EL1 or BRBCR_EL2 was 0"),
        (ring(32), "lacks MSR_LBR_INFO_0 (0xdc0) and those behind it"),
        (ring(16), "LBRs of this processor have no cycles"),
        (registers({0xC0010300 + i: BACK[i & 1] | (i & 1) << 63 for i in range(32)}), "AMD"),
    ],
    ids=["brbe", "no-info", "old", "amd"],
)
def test_each_cause_of_no_cycles_has_its_sentence(
    tmp_path: Path, content: str, reason: str
) -> None:
    found = evidence_of_dump(tmp_path / "dump.txt", content)
    (told,) = found.limits.no_cycles
    assert reason in told
    assert any(told in note for note in latency(found)[0].notes)


def test_a_filter_without_cycles_is_named() -> None:
    kept = 1 << BRANCH_FILTER_BITS["any"] | 1 << BRANCH_FILTER_BITS["no_cycles"]
    found = gather_sources([source(Sample([BACK] * 3, event=0), filters=kept)], program()).evidence
    assert "its filter says no_cycles" in found.limits.no_cycles[0]
