"""Recordings opened, counted and laid over their program, for every command alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders.compat import AS_LLVM_PROFGEN, AS_PERF2BOLT
from builders.recordings import PIE, RECORDING, STATIC, STATIC_RECORDING

from lbr2pgo.model import waterfall
from lbr2pgo.model.compat import OURS, Compat
from lbr2pgo.model.count_sums import merge
from lbr2pgo.model.incomplete import EmptyProfileError
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.recordings import Inputs, read_and_replay, replay_sources
from lbr2pgo.replay.replaying import ReadingOptions, image_facts
from lbr2pgo.sources import open_source
from lbr2pgo.support.errors import InputError


def test_reading_alone_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = read_and_replay(Inputs((RECORDING,), PIE))
    assert len(found.counts) == 144
    waterfall.check(found.flow.tallies)
    assert list(tmp_path.iterdir()) == []


def test_profiles_come_in_their_order() -> None:
    found = read_and_replay(Inputs((STATIC_RECORDING, STATIC_RECORDING), STATIC))
    assert found.program.image.path == str(STATIC)
    assert [source.info.path for source in found.sources] == [str(STATIC_RECORDING)] * 2


def test_what_is_open_already_gives_the_same() -> None:
    found = replay_sources([open_source(RECORDING)], Program.open(PIE))
    whole = read_and_replay(Inputs((RECORDING,), PIE))
    assert list(found.counts.rows()) == list(whole.counts.rows())
    twice = replay_sources([open_source(RECORDING)] * 2, Program.open(PIE))
    assert list(twice.counts.rows()) == list(merge([whole.counts] * 2).rows())


@pytest.mark.parametrize("bad", ["profile", "binary"])
def test_what_can_not_be_read_is_named(bad: str, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("no such thing")
    profile, binary = (wrong, PIE) if bad == "profile" else (RECORDING, wrong)
    with pytest.raises(InputError) as raised:
        read_and_replay(Inputs((profile,), binary))
    assert raised.value.where == str(wrong)


def test_what_each_tool_drops_is_dropped_as_it_does_alone(
    tmp_path: Path, tool: Callable[[str], str], run: Callable[..., object]
) -> None:
    (tmp_path / "bat").write_bytes(bytes(16))
    bolted = tmp_path / "bolted"
    run(tool("objcopy"), f"--add-section=.note.bolt_bat={tmp_path / 'bat'}", PIE, bolted)

    def doubts(binary: Path, compat: Compat) -> bool:
        facts = image_facts(ReadingOptions(compat=compat), Program.open(binary), ())
        assert facts.skips_leaf is None, "nothing has call chains"
        return facts.doubts_full_stacks

    assert doubts(bolted, AS_PERF2BOLT)
    assert not doubts(PIE, AS_PERF2BOLT)
    assert not doubts(bolted, AS_LLVM_PROFGEN)
    assert not doubts(bolted, OURS)


def test_nothing_can_not_be_read() -> None:
    with pytest.raises(InputError, match="no profile was given"):
        Inputs((), PIE)


def test_a_strict_reading_rejects_what_passes_a_call(tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    call = _call_of(STATIC)
    traces.write_text(f"F {call:x} {call + 5:x} 7\n")
    lenient = read_and_replay(Inputs((traces,), STATIC)).flow
    strict = read_and_replay(Inputs((traces,), STATIC, strict=True)).flow
    assert lenient.tallies["runs_valid"] == 7
    assert waterfall.losses_of(strict.tallies, "runs_valid") == {"crosses_call": 7}


def _call_of(path: Path) -> int:
    """A direct call of five bytes, in code that returns from it."""
    program = Program.open(path)
    main = program.address_of("main")
    assert main is not None
    table = program.instructions_for(np.array([main], np.uint64))
    calls = table.address[(table.kind == Kind.CALL) & (table.size == 5)]
    return int(calls[0])


def test_recordings_of_nothing_are_refused_when_asked(tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    traces.write_text("B 1 2 3 0\n")
    found = read_and_replay(Inputs((traces,), STATIC))
    with pytest.raises(EmptyProfileError):
        found.refuse_nothing()
    read_and_replay(Inputs((RECORDING,), PIE)).refuse_nothing()


def test_options_are_the_same_for_files_and_for_what_is_open() -> None:
    options = ReadingOptions(strict=True)
    sources, program = [open_source(RECORDING)], Program.open(PIE)
    found = replay_sources(sources, program, options)
    whole = read_and_replay(Inputs((RECORDING,), PIE, strict=True))
    assert dict(found.flow.tallies) == dict(whole.flow.tallies)
