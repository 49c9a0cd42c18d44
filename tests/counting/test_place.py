"""Programs found in real recordings that do not show by name, or not at all, where they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from builders.recordings import TESTBINS

from lbr2pgo.counting.place import with_made_code
from lbr2pgo.model.address_space_events import Comm, Fork, Mmap, SpaceEvent
from lbr2pgo.replay.recordings import Inputs, read_and_replay
from lbr2pgo.replay.replayed import Replayed
from lbr2pgo.support.addresses import FileOffset, RuntimeAddress
from lbr2pgo.support.errors import InputError

Tool = Callable[[str], str]
Run = Callable[..., object]
PROGRAMS = ("x86-64/interp.pie", "x86-64/shapes.pie", "x86-64/interp.static", "aarch64/shapes.pie")
PIES = tuple(name for name in PROGRAMS if name.endswith(".pie"))


def recording_of(name: str) -> Path:
    return TESTBINS / "recordings" / f"{name.replace('/', '-')}.perf.data"


def as_text(where: Path, name: str, tool: Tool, run: Run, *options: str) -> Path:
    text = where / "script.txt"
    command = (tool("perf"), "script", "-i", recording_of(name), "-F", "ip,brstack", *options)
    text.write_text(run(*command).stdout)  # type: ignore[attr-defined]
    return text


def replayed(profile: Path, binary: Path) -> Replayed:
    return read_and_replay(Inputs(profiles=(profile,), binary=binary))


def same(one: Replayed, other: Replayed) -> bool:
    return list(one.counts.rows()) == list(other.counts.rows())


@pytest.mark.parametrize("name", PROGRAMS)
def test_text_without_mappings_counts_as_the_recording_does(
    name: str, tmp_path: Path, tool: Tool, run: Run
) -> None:
    found = replayed(as_text(tmp_path, name, tool, run), TESTBINS / name)
    assert same(found, replayed(recording_of(name), TESTBINS / name))
    (note,) = [note for note in found.notes if "no mappings recorded" in note]
    assert name not in PIES or "above its own addresses, as its branches tell: " in note
    assert name not in PIES or "branches there are its own" in note


def test_where_branches_do_not_tell_the_error_says_how_to_print_mappings(
    tmp_path: Path, tool: Tool, run: Run
) -> None:
    text = as_text(tmp_path, "x86-64/interp.pie", tool, run)
    with pytest.raises(InputError, match="do not tell where") as error:
        replayed(text, TESTBINS / "x86-64/shapes.pie")
    assert "--show-mmap-events" in str(error.value.cure)


def renamed(where: Path, name: str, run: Run, tool: Tool) -> Path:
    binary = where / "other.name"
    run(tool("objcopy"), "--remove-section=.note.gnu.build-id", TESTBINS / name, binary)
    return binary


@pytest.mark.parametrize("name", ["x86-64/interp.pie", "x86-64/shapes.pie", "x86-64/interp.static"])
@pytest.mark.parametrize("as_what", ["perf.data", "text"])
def test_a_renamed_binary_without_build_id_is_found_by_its_segments_and_branches(
    name: str, as_what: str, tmp_path: Path, tool: Tool, run: Run
) -> None:
    profile = recording_of(name)
    if as_what == "text":
        profile = as_text(tmp_path, name, tool, run, "--show-mmap-events")
    found = replayed(profile, renamed(tmp_path, name, run, tool))
    assert same(found, replayed(recording_of(name), TESTBINS / name))
    (note,) = [note for note in found.notes if "by segments" in note]
    assert f"{name} (" in note
    assert "branches there are its own" in note


@pytest.mark.parametrize(
    ("recorded", "given"),
    [("x86-64/interp.pie", "x86-64/shapes.pie"), ("x86-64/shapes.static", "x86-64/interp.static")],
)
def test_another_program_is_not_taken_for_the_recorded_one(
    recorded: str, given: str, tmp_path: Path, tool: Tool, run: Run
) -> None:
    with pytest.raises(InputError, match="no process in this recording mapped"):
        replayed(recording_of(recorded), renamed(tmp_path, given, run, tool))


def mapped(pid: int, time: int, path: str, *, executable: bool = True) -> Mmap:
    place = RuntimeAddress(0x1000), 0x1000, FileOffset(0)
    return Mmap(pid, pid, time, *place, path, executable=executable)


EXEC, FILE = Comm(7, 7, 5, "node", is_exec=True), mapped(7, 5, "/usr/bin/node")
CODE, LATER = mapped(7, 0, "jit-7.dump"), mapped(7, 8, "jit-7.dump")


def test_it_comes_behind_the_process_and_before_its_files() -> None:
    events: list[SpaceEvent] = [mapped(7, 1, "/bin/sh"), EXEC, FILE, mapped(7, 9, "/lib/libc.so")]
    begun = mapped(7, 5, "jit-7.dump")
    assert with_made_code(events, [CODE, LATER]) == [
        events[0], EXEC, begun, FILE, LATER, events[3]
    ]  # fmt: skip


def test_a_process_whose_beginning_was_not_recorded_has_it_first() -> None:
    assert with_made_code([FILE], [CODE]) == [CODE, FILE]


def test_a_thread_is_no_process_and_a_fork_is_one() -> None:
    thread, process = Fork(7, 7, 8, 6), Fork(7, 3, 7, 4)
    own = mapped(7, 4, "jit-7.dump")
    assert with_made_code([process, FILE, thread], [CODE]) == [process, own, FILE, thread]


def test_its_memory_hides_it_not() -> None:
    names = ("//anon", "/memfd:doublemapper (deleted)", "[heap]", "/dev/zero (deleted)")
    memory: list[SpaceEvent] = [mapped(7, 3, name) for name in names]
    other = mapped(8, 3, "//anon")
    data = mapped(7, 3, "//anon", executable=False)
    assert with_made_code([*memory, other, data], [CODE]) == [CODE, other, data]
