from __future__ import annotations

from pathlib import Path

from builders.processes import BUILD_IDS, IDLE, LIBRARY, MISSING, process_recording
from builders.recordings import PIE

from lbr2pgo.program.elf.find import ImagePlaces
from lbr2pgo.replay.recorded_images import recorded_images
from lbr2pgo.sources import open_source


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
