"""Which program is taken where nobody names it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from builders import perf_data as build
from builders.perf_data import Event
from builders.processes import BUILD_IDS, IDLE, LIBRARY, MISSING, process_recording
from builders.recordings import PIE, RECORDING, STATIC, TESTBINS, recording_of

import lbr2pgo
from lbr2pgo.program.elf.find import ImagePlaces
from lbr2pgo.replay.recorded_program import recorded_images, recorded_program
from lbr2pgo.sources import open_source
from lbr2pgo.support.errors import InputError


def test_each_mapped_file_is_told_once_and_where_it_is(tmp_path: Path) -> None:
    places = {PIE: str(PIE.resolve()), LIBRARY: "/opt/shapes.pie"}
    source = open_source(process_recording(tmp_path / "perf.data", places))
    images = {image.path: image for image in recorded_images([source, source], ImagePlaces())}
    assert set(images) == {*places.values(), MISSING, IDLE}
    assert images[places[PIE]].found == PIE.resolve()
    assert images[places[LIBRARY]].found is None
    assert str(images[places[LIBRARY]]) == f"/opt/shapes.pie ({BUILD_IDS[LIBRARY]})"
    assert str(images[MISSING]) == MISSING
    assert images[MISSING].name == "libgone.so.1"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return Path(shutil.copy(STATIC, tmp_path / "app"))


def test_the_program_that_was_mapped_first_is_taken(program: Path) -> None:
    trailer = Event().trailer(10, 10, 2)
    library = build.mmap2(10, 0x7F0000000000, 0x1000, "/lib/libc.so.6", trailer)
    source = open_source(recording_of(program, extra=library))
    assert recorded_program([source, source]) == program


def test_a_program_that_starts_another_is_not_the_only_one(program: Path) -> None:
    trailer = Event().trailer(10, 10, 2)
    started = build.comm(10, 10, "ls", trailer, misc=2 | 1 << 13)
    mapped = build.mmap2(10, 0x400000, 0x1000, "/bin/ls", trailer)
    source = open_source(recording_of(program, extra=started + mapped))
    with pytest.raises(InputError, match=rf"2 programs were recorded \({program}, /bin/ls\)"):
        recorded_program([source])


def test_recordings_of_two_programs_have_no_common_one(program: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Path(shutil.copy(STATIC, tmp_path / "other" / "app"))
    sources = [open_source(recording_of(path)) for path in (program, other)]
    with pytest.raises(InputError, match="2 programs were recorded") as refusal:
        recorded_program(sources)
    assert refusal.value.cure == "Name the program with --binary."


def test_another_build_at_its_place_is_not_taken(program: Path) -> None:
    source = open_source(recording_of(program))
    shutil.copy(TESTBINS / "x86-64" / "shapes.static", program)
    with pytest.raises(InputError, match="is another build now: build-id 427ca627"):
        recorded_program([source])


def test_a_program_that_is_gone_is_not_taken(program: Path) -> None:
    source = open_source(recording_of(program))
    program.unlink()
    with pytest.raises(InputError, match=f"the recorded {program} is not here"):
        recorded_program([source])


def test_without_a_build_id_nothing_is_taken_on_trust(program: Path) -> None:
    with pytest.raises(InputError, match=r"no build-id to know .* again by"):
        recorded_program([open_source(recording_of(program, None))])


def test_text_without_mappings_names_no_program(tmp_path: Path) -> None:
    text = tmp_path / "dump.txt"
    text.write_text("  0x22a8da/0x22a8c0/P/-/-/1\n" * 3)
    with pytest.raises(InputError, match="no mappings of a program"):
        recorded_program([open_source(text)])


def test_saved_counts_name_no_program(tmp_path: Path) -> None:
    saved = tmp_path / "counts.npz"
    lbr2pgo.convert(RECORDING, PIE, outputs=[lbr2pgo.output("counts", saved)])
    with pytest.raises(InputError, match="the format does not say which program was recorded"):
        recorded_program([open_source(saved)])
