"""Hot branches and mispredictions of recordings made by hardware, beside `perf report`."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from builders.elf import Function, elf
from builders.evidence import gather
from builders.recordings import TESTBINS

from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.hot_branches import hot_branches
from lbr2pgo.analyses.mispredictions import mispredictions
from lbr2pgo.sources.code_addresses import addresses_of_offsets
from lbr2pgo.support.addresses import file_offsets
from lbr2pgo.support.arrays import U64

_LINE = re.compile(
    r"\s*[\d.]+%\s*\|\s*(\d+)\s*\|\s*(.*?)\s*\|\s*(.*?)\s*\|\[.\] 0x(\w+)\s*\|"
    r"\[.\] 0x(\w+)\s*\|\s*(\w)"
)


def perf_branches(run, tool, recording: Path, image: str) -> Counter[tuple[int, int, str]]:
    """Branches inside an image as (from, to, Y or N if mispredicted), by offset in the file."""
    shown = run(
        tool("perf"), "report", "-i", recording, "-n", "--stdio", "-t", "|",
        "--sort", "dso_from,dso_to,addr_from,addr_to,mispredict",
    )  # fmt: skip
    found: Counter[tuple[int, int, str]] = Counter()
    for line in shown.stdout.splitlines():
        match = _LINE.match(line)
        if match and match[2].startswith(image) and match[3].startswith(image):
            found[int(match[4], 16), int(match[5], 16), match[6]] += int(match[1])
    return found


def ours(recording: Path, binary: Path):
    found = gather((recording,), binary).evidence
    table = hot_branches(found, None)
    branches = {
        (row["from_address"], row["to_address"]): row["count"]
        for row in table.records()
        if row["from_address"] is not None and row["to_address"] is not None
    }
    return found, branches


def compare(run, tool, recording: Path, binary: Path, image: str) -> int:
    """Both counts of every branch, and every mispredicted one, are equal; how many there are."""
    theirs = perf_branches(run, tool, recording, image)
    found, branches = ours(recording, binary)
    layout = found.program.image.layout

    def address(offset: int) -> int:
        return int(addresses_of_offsets(layout, file_offsets(np.array([offset], np.uint64)))[0][0])

    expected: Counter[tuple[int, int]] = Counter()
    missed: Counter[int] = Counter()
    for (source, target, is_missed), count in theirs.items():
        expected[address(source), address(target)] += count
        missed[address(source)] += count if is_missed == "Y" else 0
    assert branches == dict(expected)
    _, by_branch, _ = mispredictions(found, None)
    assert {
        row["address"]: row["mispredicted"] for row in by_branch.records() if row["mispredicted"]
    } == {address: count for address, count in missed.items() if count}
    return len(branches)


def test_a_program_on_a_skylake_server(corpus, run, tool) -> None:
    recording = corpus("autofdo/propeller_sample_1.perfdata1.zst")
    binary = corpus("autofdo/propeller_sample_1.bin")
    assert compare(run, tool, recording, binary, "propeller_sample") == 9


@pytest.mark.parametrize(("name", "image"), [("quipper/perf.data.branch-4.14", "ld-2.23.so")])
def test_a_library_in_a_recording_of_a_whole_machine(
    corpus, run, tool, tmp_path: Path, name: str, image: str
) -> None:
    """The library itself is not at hand: any address of the stub may be a branch, to anywhere."""
    stub = tmp_path / image
    stub.write_bytes(elf(b"\xc3" * 0x30000, 0x1000, [Function("all", 0x1000, 0x30000)]))
    recording = corpus(name)
    theirs = perf_branches(run, tool, recording, image)
    assert len(theirs) > 20
    _, branches = ours(recording, stub)
    expected: Counter[tuple[int, int]] = Counter()
    for (source, target, _), count in theirs.items():
        expected[source, target] += count
    assert branches == dict(expected)


def is_nameless(branch: tuple[str, str, bool]) -> bool:
    """Whether perf found no symbol for an end of a branch."""
    return any(end.startswith("0x") for end in branch[:2])


def installed(name: str, root: Path) -> tuple[Path, Path]:
    """A test program below a root, where perf finds it as it was recorded, and its recording."""
    binary = root / "tmp/testbins/x86-64" / name
    binary.parent.mkdir(parents=True)
    shutil.copy(TESTBINS / "x86-64" / name, binary)
    return binary, TESTBINS / "recordings" / f"x86-64-{name}.perf.data"


def offsets(found: Evidence, addresses: U64) -> list[str]:
    """Addresses as perf writes them: `function+0x12`, of a long name its beginning."""
    regions = found.program.regions
    starts = regions.start[regions.containing(addresses)]
    pairs = zip(found.names.functions(addresses), (addresses - starts).tolist(), strict=True)
    return [f"{function[:18]}+{offset:#x}".removesuffix("+0x0") for function, offset in pairs]


_NAMED = re.compile(
    r"\s*[\d.]+%\s*\|\s*(\d+)\s*\|\s*(\S+)\s*\|\s*(\S+)\s*\|\[.\] (\S+)\s*\|\[.\] (\S+)\s*\|\s*(\w)"
)


def test_functions_are_named_as_perf_names_them(tool, run, tmp_path: Path) -> None:
    name = "interp.pie"
    binary, recording = installed(name, tmp_path)
    shown = run(
        tool("perf"), "report", "-f", "-i", recording, "--symfs", tmp_path, "-n", "--stdio",
        "-t", "|", "--sort", "dso_from,dso_to,addr_from,addr_to,mispredict",
    )  # fmt: skip
    theirs: Counter[tuple[str, str, bool]] = Counter()
    for line in shown.stdout.splitlines():
        match = _NAMED.match(line)
        if match and match[2] == match[3] == name:
            theirs[match[4], match[5], match[6] == "Y"] += int(match[1])
    found = gather((recording,), binary).evidence
    branches = found.recorded
    inside = branches.known & 3 == 3
    ends = [offsets(found, column[inside]) for column in (branches.from_, branches.to)]
    ours: Counter[tuple[str, str, bool]] = Counter()
    counts = zip(*ends, branches.count[inside], branches.mispredicted[inside], strict=True)
    for source, target, count, missed in counts:
        if "[" not in (source[0], target[0]):
            ours[source, target, True] += int(missed)
            ours[source, target, False] += int(count - missed)
    assert +ours == Counter({k: n for k, n in theirs.items() if not is_nameless(k)})
    assert len(+ours) > 50


Place = tuple[str, str]
"""Function with an offset, and source line, of one end of a branch."""


def perf_places(run, tool, recording: Path, root: Path, image: str, end: str) -> Counter[Place]:
    """How often perf counts each place inside an image."""
    # perf looks a line up when it compares it with another one, so lines come first. With --sort,
    # perf 6.1 crashes on symbol_from.
    shown = run(
        tool("perf"), "report", "-f", "-i", recording, "--symfs", root, "--stdio",
        "--no-demangle", "-t", "|", "-F", f"sample,srcline_{end},addr_{end},dso_{end}",
    )  # fmt: skip
    found: Counter[Place] = Counter()
    for text in shown.stdout.splitlines():
        row = [field.strip().removeprefix("[.] ") for field in text.split("|")]
        if row[3:] == [image]:
            found[row[2], row[1]] += int(row[0])
    return found


@pytest.mark.parametrize(
    ("name", "end", "least"),
    [("interp.pie", "from", 40), ("interp.pie", "to", 30), ("shapes.static", "from", 70)],
)
def test_branches_have_the_source_lines_that_perf_tells(
    tool, run, tmp_path: Path, name: str, end: str, least: int
) -> None:
    """Wherever there is one: without debug information perf names a file that lies near."""
    binary, recording = installed(name, tmp_path)
    found = gather((recording,), binary).evidence
    rows = [row for row in hot_branches(found, None).records() if row[f"{end}_line"] is not None]
    places = offsets(found, np.array([row[f"{end}_address"] for row in rows], dtype=np.uint64))
    ours: Counter[Place] = Counter()
    for place, row in zip(places, rows, strict=True):
        ours[place, row[f"{end}_line"]] += row["count"]
    theirs = perf_places(run, tool, recording, tmp_path, name, end)
    assert ours == Counter({place: n for place, n in theirs.items() if place[0] in {*places}})
    assert len(ours) > least
