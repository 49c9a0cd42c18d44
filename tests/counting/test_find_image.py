"""Which mapped file is the binary: by build-id, then path, then name, and what is said aloud."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from builders.sources import LAYOUT

from lbr2pgo.counting.find_image import (
    ImageMatch,
    match_image,
)
from lbr2pgo.model.address_space_events import Comm, Mmap, SpaceEvent
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.support.errors import InputError

OURS, OTHER = "aa" * 20, "bb" * 20
ELSEWHERE, OTHER_NAME = "/old/place/prog", "/bin/renamed"


def mmap(path: str = LAYOUT.path, build_id: str | None = None, **fields: bool) -> Mmap:
    return Mmap(1, 1, 0, 0x1000, 0x1000, 0, path, build_id, **fields)


def match(
    *events: SpaceEvent,
    header: Mapping[str, str] | None = None,
    layout: ImageLayout = LAYOUT,
    build_id: str | None = None,
) -> ImageMatch:
    return match_image(layout, events, header or {}, where="perf.data", build_id=build_id)


def refusal(*events: SpaceEvent, **options: object) -> InputError:
    with pytest.raises(InputError) as error:
        match(*events, **options)  # type: ignore[arg-type]
    assert error.value.where == "perf.data"
    assert error.value.cure is not None
    assert error.value.cure.endswith(".")
    return error.value


@pytest.mark.parametrize("recorded", [OURS, OURS.upper()])
def test_the_build_id_decides_whatever_the_path(recorded: str) -> None:
    found = match(mmap(OTHER_NAME, recorded), mmap(LAYOUT.path, OTHER))
    assert found == ImageMatch((OTHER_NAME,), "build-id", build_id=OURS)


def test_a_windows_path_ends_with_the_name_of_the_program() -> None:
    windows = replace(LAYOUT, path="/here/app.exe", build_id=None)
    recorded = mmap(r"C:\Users\me\build\app.exe")
    assert recorded.is_code_of_file
    found = match(recorded, mmap(r"C:\Windows\System32\kernel32.dll"), layout=windows)
    assert (found.paths, found.how) == ((recorded.path,), "name")
    assert refusal(mmap(r"/odd\app.exe"), layout=windows)


def test_the_build_id_may_stand_in_the_header_only() -> None:
    found = match(mmap(OTHER_NAME), header={OTHER_NAME: OURS})
    assert found == ImageMatch((OTHER_NAME,), "build-id", build_id=OURS)


def test_the_build_id_may_stand_in_one_of_several_mappings_of_a_file() -> None:
    assert match(mmap(OTHER_NAME, OURS), mmap(OTHER_NAME)).how == "build-id"
    assert match(mmap(OTHER_NAME), mmap(OTHER_NAME, OURS)).how == "build-id"


def test_all_paths_of_one_build_are_meant() -> None:
    found = match(mmap("/a/prog", OURS), mmap("/b/prog", OURS), mmap("/c/prog", OTHER))
    assert set(found.paths) == {"/a/prog", "/b/prog"}


def test_perf_pads_short_build_ids_with_zeros() -> None:
    short = replace(LAYOUT, build_id="0123456789abcdef")
    assert match(mmap(OTHER_NAME, "0123456789abcdef" + "00" * 12), layout=short).how == "build-id"
    assert refusal(mmap(OTHER_NAME, "0123456789abcd" + "00" * 13), layout=short)


@pytest.mark.parametrize(
    ("recorded", "how"), [(LAYOUT.path, "path"), (ELSEWHERE, "name"), ("prog", "name")]
)
def test_without_build_id_path_and_name_are_assumed_aloud(recorded: str, how: str) -> None:
    found = match(mmap("/lib/libc.so.6"), mmap(recorded))
    assert (found.paths, found.how) == ((recorded,), how)
    assert found.assumption is not None
    assert recorded in found.assumption
    assert "the recording has no build-id" in found.assumption


def test_the_path_goes_before_the_name() -> None:
    assert match(mmap(ELSEWHERE), mmap(LAYOUT.path)).paths == (LAYOUT.path,)


def test_a_binary_without_build_id_is_matched_by_path_although_the_recording_has_one() -> None:
    found = match(mmap(LAYOUT.path, OTHER), layout=replace(LAYOUT, build_id=None))
    assert found.how == "path"
    assert "the binary has no build-id" in (found.assumption or "")


@pytest.mark.parametrize("path", [LAYOUT.path, ELSEWHERE])
def test_another_build_of_that_path_or_name_is_refused(path: str) -> None:
    error = refusal(mmap(path, OTHER))
    assert "another build" in error.what
    assert OURS in error.what
    assert OTHER in error.what
    assert f"--build-id {OTHER}" in (error.cure or "")


def test_the_users_build_id_replaces_the_binarys_own() -> None:
    assert match(mmap(LAYOUT.path, OTHER), build_id=OTHER) == ImageMatch(
        (LAYOUT.path,), "build-id", build_id=OTHER
    )
    assert refusal(mmap(LAYOUT.path, OURS), build_id=OTHER)
    stripped = replace(LAYOUT, build_id=None)
    assert match(mmap(OTHER_NAME, OTHER), layout=stripped, build_id=OTHER).how == "build-id"


def test_among_files_of_one_name_an_unknown_build_may_be_ours() -> None:
    found = match(mmap("/a/prog", OTHER), mmap("/b/prog"))
    assert found.how == "name"
    assert found.assumption is not None
    assert found.paths == ("/b/prog",), "the other is known to be another build"
    assert "some mappings have no build-id" in found.assumption


def test_one_path_may_show_several_builds() -> None:
    """Containers and rebuilds: each mapping is judged by its own build-id."""
    ours, other, silent = mmap(build_id=OURS), mmap(build_id=OTHER), mmap()
    for events in ((ours, other, silent), (other, ours, silent)):
        found = match(*events)
        assert found.how == "build-id"
        assert [found.shows(event) for event in (ours, other, silent)] == [True, False, True]
    assert not found.shows(mmap(OTHER_NAME, OURS))
    assert not found.shows(mmap(build_id=OURS, executable=False))


def test_a_binary_without_build_id_takes_every_build_of_its_path() -> None:
    found = match(mmap(build_id=OTHER), layout=replace(LAYOUT, build_id=None))
    assert found.shows(mmap(build_id=OTHER))
    assert found.shows(mmap())


def test_a_file_that_nobody_mapped_is_refused_with_what_was() -> None:
    assert "…" not in (refusal(*(mmap(f"/lib/{i}.so") for i in range(5))).cure or "")
    error = refusal(*(mmap(f"/lib/{i}.so") for i in range(6)))
    assert LAYOUT.path in error.what
    assert "/lib/0.so" in (error.cure or "")
    assert "…" in (error.cure or "")


@pytest.mark.parametrize(
    "events", [(), (Comm(1, 1, 0, "prog"),), (mmap(executable=False),)]
)  # data mappings alone tell nothing of code
def test_no_mappings_at_all_mean_addresses_as_linked(events: Sequence[SpaceEvent]) -> None:
    found = match(*events)
    assert (found.paths, found.how) == ((), "as linked")
    assert "no mappings" in (found.assumption or "")


def test_a_data_mapping_is_no_match() -> None:
    assert refusal(mmap(LAYOUT.path, OURS, executable=False), mmap("/lib/x.so"))


@pytest.mark.parametrize(
    ("before", "behind", "is_found"),
    [(0, 0, True), (0x1000, 0, False), (0, 0x1000, False)],
    ids=["its pages", "a page before", "a page behind"],
)
def test_a_mapping_of_the_segments_holds_no_page_more(
    before: int, behind: int, is_found: bool
) -> None:
    (code,) = (segment for segment in LAYOUT.segments if segment.executable)
    first = (code.file_offset & ~0xFFF) + 0x4000
    layout = replace(LAYOUT, segments=(replace(code, file_offset=code.file_offset + 0x4000),))
    event = mmap(OTHER_NAME)
    event = event._replace(
        start=0x7000000 - before, file_offset=first - before, length=0x2000 + before + behind
    )
    if is_found:
        assert match(event, layout=layout).how == "segments"
    else:
        refusal(event, layout=layout)


@pytest.mark.parametrize(("elsewhere", "is_found"), [(0, True), (0x1000, False)])
def test_a_program_that_is_not_moved_is_known_by_its_place(elsewhere: int, is_found: bool) -> None:
    """Linked so that its pages lie in memory as in the file."""
    (code,) = (segment for segment in LAYOUT.segments if segment.executable)
    code = replace(code, file_offset=code.address)
    layout = replace(LAYOUT, is_pie=False, segments=(code,))
    first = code.address & ~0xFFF
    event = Mmap(1, 1, 0, first + elsewhere, 0x2000, first, OTHER_NAME)
    if is_found:
        assert match(event, layout=layout).how == "segments"
    else:
        refusal(event, layout=layout)
