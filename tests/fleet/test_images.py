"""Several images of a recording in one pass, against each for itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from builders import perf_data as build
from builders.outputs import outputs
from builders.recordings import (
    FEATURE_BUILD_ID,
    PIE,
    RECORDING,
    STATIC,
    STATIC_BUILD_ID,
    STATIC_ENTRY,
    recorded,
)

from lbr2pgo.conversion import Conversion, ConvertOptions, convert
from lbr2pgo.fleet.images import ImagesOptions, convert_images
from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import TO
from lbr2pgo.program.elf.find import ImagePlaces
from lbr2pgo.program.program import Program
from lbr2pgo.sources import base, open_source
from lbr2pgo.support.errors import InputError, OutputError

BIAS = 0x7F0000000000
PIE_PATH, STATIC_PATH = "/opt/lib/interp.pie", "/elsewhere/interp.static"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A process that runs in two images, and goes from each to the other and elsewhere."""
    program = Program.open(PIE)
    table, layout = program.branches, program.image.layout
    segment = next(s for s in layout.segments if s.executable)
    start = BIAS + segment.address - segment.file_offset
    first = int(np.flatnonzero(table.has_target & (table.target < table.address))[0])
    loop = (BIAS + int(table.address[first]), BIAS + int(table.target[first]), 2)
    into, back = (0x22A87D, loop[1], 1), (loop[0], 0x22A8C0, 1)
    stacks = [
        [STATIC_ENTRY] * 3,
        [loop, loop, into, STATIC_ENTRY],
        [STATIC_ENTRY, back, loop],
        [(0x5550000, 0x5550010, 2)],
    ]
    event = build.Event()
    extra = build.mmap2(10, start, 0x4000, PIE_PATH, event.trailer(10, 10, 1), offset=0)
    other = build.mmap2(10, 0x5550000, 0x1000, "/opt/lib/gone.so", event.trailer(10, 10, 1))
    ids = {PIE_PATH: layout.build_id or "", STATIC_PATH: STATIC_BUILD_ID}
    named = b"".join(build.build_id_record(p, bytes.fromhex(i)) for p, i in ids.items())
    path = tmp_path_factory.mktemp("two") / "perf.data"
    features = {FEATURE_BUILD_ID: named}
    path.write_bytes(recorded(stacks * 4, event=event, extra=extra + other, features=features))
    return path


@pytest.fixture
def sysroot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for path, program in ((PIE_PATH, PIE), (STATIC_PATH, STATIC)):
        there = tmp_path / "root" / path.lstrip("/")
        there.parent.mkdir(parents=True)
        shutil.copy(program, there)
    return tmp_path / "root"


def of_each(folder: Path, *recordings: Path, **options: object) -> ImagesOptions:
    named = outputs(counts=folder / "{name}.npz", fdata=folder / "{name}.{build_id}.fdata")
    return ImagesOptions(profiles=recordings, outputs=named, **options)  # type: ignore[arg-type]


def test_each_image_has_what_its_own_run_writes_from_one_reading(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    results = {}
    for binary in (STATIC, PIE):
        own = outputs(counts=alone / f"{binary.name}.npz", fdata=alone / f"{binary.name}.fdata")
        results[binary.name] = convert(ConvertOptions((recording,), binary, outputs=own))
    samples: list[int] = []
    options = of_each(tmp_path, recording, binaries=(STATIC, PIE))
    done = convert_images(options, lambda number, _: samples.append(number))
    assert sum(samples) == 16, "the recording was read more than once"
    assert [image.binary for image in done.images] == [STATIC.resolve(), PIE.resolve()]
    for image in done.images:
        name = image.binary.name
        written = tmp_path / f"{name}.npz", tmp_path / f"{name}.{image.build_id}.fdata"
        for ours, theirs in zip(written, (f"{name}.npz", f"{name}.fdata"), strict=True):
            assert ours.read_bytes() == (alone / theirs).read_bytes()
        assert image.result.tallies == results[name].tallies
        waterfall.check(image.result.tallies)


def test_calls_from_another_image_enter_functions(recording: Path, tmp_path: Path) -> None:
    done = convert_images(of_each(tmp_path, recording, binaries=(STATIC, PIE)))
    for image in done.images:
        assert isinstance(image.result, Conversion)
        branches = image.result.counts.branches()
        assert (branches.known == TO).any(), "nothing comes from outside"


def test_all_images_are_those_that_are_found(
    recording: Path, sysroot: Path, tmp_path: Path
) -> None:
    places = ImagePlaces((sysroot,))
    options = of_each(tmp_path, recording, all_images=True, places=places)
    done = convert_images(options)
    assert [image.name for image in done.images] == ["interp.static", "interp.pie"]
    assert all(image.is_complete for image in done.images)
    assert done.notes == ("not found: /opt/lib/gone.so",)


def test_a_recording_that_lacks_an_image_adds_nothing_to_it(
    recording: Path, sysroot: Path, tmp_path: Path
) -> None:
    """Found in the other recording; what is named has to be in all of them, as ever."""
    places = ImagePlaces((sysroot,))
    options = of_each(tmp_path, recording, RECORDING, all_images=True, places=places)
    static = convert_images(options).images[0]
    assert any("no process in this recording mapped" in note for note in static.result.notes)
    alone = convert(ConvertOptions((recording,), STATIC))
    assert static.result.tallies["branches_in_image"] == alone.tallies["branches_in_image"]
    with pytest.raises(InputError, match="no process in this recording mapped"):
        convert_images(of_each(tmp_path, recording, RECORDING, binaries=(STATIC, PIE)))


def test_an_image_without_samples_keeps_no_other_from_being_written(
    recording: Path, tmp_path: Path
) -> None:
    only_static = tmp_path / "perf.data"
    only_static.write_bytes(recorded([[STATIC_ENTRY] * 2]))
    options = of_each(tmp_path, only_static, binaries=(STATIC, PIE))
    with pytest.raises(InputError, match="no process in this recording mapped"):
        convert_images(options)
    done = convert_images(of_each(tmp_path, only_static, binaries=(STATIC, PIE), all_images=True))
    assert [image.is_complete for image in done.images] == [True, False]
    assert not done.images[1].has_branches


def test_sources_by_name_are_read_for_each_image(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("B 22a8da 22a8c0 7 1\nF 22a8c0 22a8da 4\n")
    source = open_source(text)
    assert not isinstance(source, base.StackSource)
    done = convert_images(of_each(tmp_path, text, binaries=(STATIC, PIE)))
    assert done.images[0].is_complete


def test_senseless_options_are_refused(recording: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="each of several images"):
        ImagesOptions(profiles=(recording,), outputs=outputs(counts=tmp_path / "x.npz"))
    same = of_each(tmp_path, recording, binaries=(STATIC, STATIC))
    assert len(convert_images(same).images) == 1
    copy = tmp_path / "there" / STATIC.name
    copy.parent.mkdir()
    shutil.copy(STATIC, copy)
    with pytest.raises(OutputError, match="another output"):
        convert_images(of_each(tmp_path, recording, binaries=(STATIC, copy)))
    (tmp_path / "gone.data").write_bytes(recorded([[STATIC_ENTRY]]))
    lost = of_each(tmp_path, tmp_path / "gone.data", all_images=True)
    with pytest.raises(InputError, match="no mapped file was found"):
        convert_images(lost)
