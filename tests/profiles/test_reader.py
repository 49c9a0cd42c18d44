"""What written profiles of each format answer, and which questions they leave open."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.outputs import every_form
from builders.recordings import PIE, RECORDING, binary

from lbr2pgo.analyses.recorded_profile import RecordedProfile
from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.bolt.tool import find_bolt
from lbr2pgo.profiles.reader import WrittenProfile, overlap
from lbr2pgo.profiles.registry import output, read_written
from lbr2pgo.profiles.staleness import Staleness
from lbr2pgo.program.program import Program
from lbr2pgo.replay.recordings import Inputs, read_and_replay

SAMPLES = ("sample_text", "extbinary", "afdo_1", "afdo", "afdo_3")
BOLT = ("fdata", "bolt_yaml")
LISTS = ("symbol_order", "call_graph_order")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a file of each form."""
    made = tmp_path_factory.mktemp("written")
    yaml = () if find_bolt() is None else (output("bolt_yaml", made / "bolt_yaml"),)
    convert(ConvertOptions((RECORDING,), PIE, outputs=(*every_form(made), *yaml)))
    return made


@pytest.fixture(scope="module")
def program() -> Program:
    return Program.open(PIE)


@pytest.fixture(scope="module")
def recorded(program: Program) -> RecordedProfile:
    return RecordedProfile(read_and_replay(Inputs((RECORDING,), PIE)), program)


def placed(path: Path, program: Program) -> WrittenProfile[object]:
    found = read_written(path)
    assert found is not None
    assert found.path == path
    return found.beside(program)


@pytest.mark.parametrize("name", [*SAMPLES, *BOLT])
def test_what_was_recorded_is_like_what_was_written(
    name: str, folder: Path, program: Program, recorded: RecordedProfile
) -> None:
    if not (folder / name).exists():
        pytest.skip("there is no llvm-bolt")
    written = placed(folder / name, program)
    stale = written.staleness(program)
    assert stale is not None
    assert stale.share == 0
    for one, other in ((written, recorded), (recorded, written), (written, written)):
        found = overlap(one, other)
        assert found is not None
        assert found.similarity == pytest.approx(1) or name == "bolt_yaml"
    assert (written.samples is None) == (name in BOLT)
    counts = written.counts(program)
    assert (counts is None) == (name in SAMPLES)
    assert counts is None or len(counts)


@pytest.mark.parametrize("name", LISTS)
def test_lists_for_linkers_tell_no_more_than_that_functions_are_there(
    name: str, folder: Path, program: Program, recorded: RecordedProfile
) -> None:
    written = placed(folder / name, program)
    assert written.samples is None
    assert written.staleness(program) == Staleness(0, 0)
    assert written.counts(program) is None
    assert overlap(recorded, written) is None
    assert overlap(written, written) is None


def test_kinds_that_have_nothing_in_common_do_not_compare(folder: Path, program: Program) -> None:
    llvm, gcc, fdata = (placed(folder / name, program) for name in ("extbinary", "afdo", "fdata"))
    assert overlap(llvm, gcc) is None
    assert overlap(llvm, fdata) is None
    assert overlap(llvm, placed(folder / "sample_text", program)) is not None


def test_another_build_is_asked_in_the_best_form(
    folder: Path, program: Program, recorded: RecordedProfile
) -> None:
    other = Program.open(binary("shapes.pie"))
    own, there = recorded.staleness(program), recorded.staleness(other)
    assert own is not None
    assert own.share == 0
    assert there == placed(folder / "sample_text", program).staleness(other)
