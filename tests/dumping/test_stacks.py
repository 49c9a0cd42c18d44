from __future__ import annotations

import pytest
from builders.sources import MemorySource, Sample, mapping

from lbr2pgo.dumping.stacks import Selection, event_text, flags_text, lines
from lbr2pgo.model import branch_stacks as words
from lbr2pgo.model.address_space_events import Comm, Exit, Fork
from lbr2pgo.sources.base import EventInfo

BRANCHES = {name: 1 << bit for name, bit in words.BRANCH_FILTER_BITS.items()}


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (0, "nothing known"),
        (words.MISPREDICTED, "mispredicted"),
        (words.PREDICTED | words.IN_TRANSACTION, "predicted, in a transaction"),
        (words.ABORT, "transaction abort"),
        (words.NOT_TAKEN | words.PREDICTED, "predicted, not taken"),
        (0xFFFF << words.CYCLES_SHIFT, "65535 cycles or more"),
        (2 | 1 << words.SPEC_SHIFT, "predicted, SPEC_WRONG_PATH"),
        (2 | 3 << words.SPEC_SHIFT, "predicted, SPEC_CORRECT_PATH"),
        (2 | 2 << words.PRIV_SHIFT, "predicted, kernel"),
        (2 | 7 << words.PRIV_SHIFT, "predicted, privilege 7"),
        (15 << words.TYPE_SHIFT | 1 << words.NEW_TYPE_SHIFT, "FAULT_DATA"),
        (15 << words.TYPE_SHIFT | 12 << words.NEW_TYPE_SHIFT, "new type 12"),
        (2 | 1 << 40, "predicted, reserved bits 0x10000000000"),
    ],
)
def test_flags_in_words(flags: int, text: str) -> None:
    assert flags_text(flags) == text


@pytest.mark.parametrize("number", range(1, 15))
def test_branch_types_have_their_names(number: int) -> None:
    assert flags_text(number << words.TYPE_SHIFT) == words.BRANCH_TYPES[number]


def test_space_events_in_words() -> None:
    assert event_text(mapping(10, 0x5000, path="/bin/p", build_id="ab", time=3)) == (
        "time 3: pid 10 maps 0x7000-0x9000: /bin/p+0x0, build-id ab"
    )
    assert event_text(mapping(10, executable=False, build_id=None)).startswith(
        "time 0: pid 10 maps as data "
    )
    assert event_text(Fork(11, 10, 11, 5)) == "time 5: pid 11 is forked from 10"
    assert event_text(Fork(10, 10, 12, 5)) == "time 5: pid 10 starts thread 12"
    assert event_text(Comm(10, 12, 6, "worker")) == "time 6: pid 10 names thread 12 worker"
    assert event_text(Comm(10, 10, 6, "prog", is_exec=True)) == "time 6: pid 10 executes prog"
    assert event_text(Exit(10, 10, 7)) == "time 7: pid 10 ends"
    assert event_text(Exit(10, 12, 7)) == "time 7: pid 10 ends thread 12"


def shown(source: MemorySource, **selection: object) -> list[str]:
    """Samples and events without entries and header, shortened to their first words."""
    text = [line for line in lines(source, Selection(**selection)) if not line.startswith("  ")]  # type: ignore[arg-type]
    return [" ".join(line.replace(",", "").split()[:4]) for line in text[1:]]


SOURCE = MemorySource(
    samples=[
        Sample([(1, 2), (3, 4)], pid=10, time=5),
        Sample([], pid=20, time=7),
        Sample([(5, 6)], pid=10, time=6),
    ],
    space=[mapping(10, time=1), mapping(20, time=6), Exit(10, 10, 9)],
    batch_size=2,
)


def test_events_stand_before_the_first_sample_that_is_not_older() -> None:
    assert shown(SOURCE) == [
        "time 1: pid 10", "sample 1: pid 10", "time 6: pid 20", "sample 2: pid 20",
        "sample 3: pid 10", "time 9: pid 10",
    ]  # fmt: skip


def test_one_process_with_its_events() -> None:
    assert shown(SOURCE, pids=(20,)) == ["time 6: pid 20", "sample 1: pid 20"]


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_a_limit_stops_and_says_so(limit: int) -> None:
    found = shown(SOURCE, limit=limit)
    assert sum(line.startswith("sample") for line in found) == limit
    assert found[-1].startswith("… and more")


def test_a_limit_that_is_not_reached_is_not_mentioned() -> None:
    assert shown(SOURCE, limit=3) == shown(SOURCE)


def test_a_sample_with_all_that_is_known() -> None:
    source = MemorySource(
        [Sample([(0x10, 0x20, 1)], time=5, weight=3, event=0, ip=0x21)],
        events=(EventInfo("cycles:u", BRANCHES["user"] | BRANCHES["any"]),),
        build_ids={"/bin/p": "abcd"},
    )
    assert list(lines(source, Selection())) == [
        "memory: test, run-time addresses",
        "event cycles:u: branches kept: user,any",
        "build-id abcd /bin/p",
        "sample 1: pid 10 tid 10 time 5, ip 0x21, event cycles:u, stands for 3, stack of 1",
        "    0               0x10 ->               0x20  mispredicted",
    ]


def test_a_sample_without_a_stack() -> None:
    (line,) = [x for x in lines(SOURCE, Selection(pids=(20,))) if x.startswith("sample")]
    assert line.endswith("no branch stack")
