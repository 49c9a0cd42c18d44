"""Files of code are found by path, name and build-id as all of them, gone through, would be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.model.address_space_events import Mmap
from lbr2pgo.model.code_files import CodeFiles, plain_build_id, same_build_id
from lbr2pgo.support.addresses import FileOffset, RuntimeAddress

PATHS = st.sampled_from(["/a/prog", "/b/prog", "prog", "/b/other/", r"C:\b\prog", r"/odd\prog"])
BUILD_IDS = st.sampled_from(["ab", "AB00", "cd", "c" + "d" * 39])
FILES = st.lists(st.tuples(PATHS, st.none() | BUILD_IDS))


def code_files(mapped: list[tuple[str, str | None]], header: dict[str, str]) -> CodeFiles:
    start, offset = RuntimeAddress(0x1000), FileOffset(0)
    return CodeFiles((Mmap(1, 1, 0, start, 0x1000, offset, *file) for file in mapped), header)


@given(FILES, st.dictionaries(PATHS, BUILD_IDS))
def test_files_are_found_as_they_are_compared(
    mapped: list[tuple[str, str | None]], header: dict[str, str]
) -> None:
    files = code_files(mapped, header)
    builds = {
        path: {known for p, i in mapped if p == path and (known := i or header.get(path))}
        for path, _ in mapped
    }
    assert files.builds == builds
    for path in ("/a/prog", "/b/other", "/c/none"):
        assert files.at(path) == {p: known for p, known in builds.items() if p == path}
    for wanted in ("ab", "cd", "ef"):
        same = [p for p, known in builds.items() if any(same_build_id(i, wanted) for i in known)]
        assert list(files.of_build(wanted)) == same
        assert files.of_build(wanted) == {path: builds[path] for path in same}


def test_a_name_is_what_stands_behind_the_last_folder() -> None:
    every = ["/a/prog", "prog", r"C:\b\prog", r"/odd\prog", "/prog/other"]
    files = code_files([(path, None) for path in every], {})
    assert list(files.named_as("/here/prog")) == every[:3]
    assert list(files.named_as("/here/other/")) == every[4:]


def test_build_ids_are_the_same_whatever_they_are_padded_with() -> None:
    assert plain_build_id("AB" + "00" * 19) == plain_build_id("ab")
    assert not same_build_id(None, None)
