"""Lines and samples of `perf script` text against regular expressions, and on arbitrary bytes."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lbr2pgo.model.branch_stacks import MISPREDICTED, PREDICTED
from lbr2pgo.sources.perf_script._brstack_samples import (
    OpenSample,
    ReadSamples,
    SampleReader,
    Survey,
)

ENTRY = re.compile(rb"0x([0-9a-fA-F]{1,16})/0x([0-9a-fA-F]{1,16})/([PM-])/-/-/(\d+)(?=\s|$)")
LETTERS = {b"P": PREDICTED, b"M": MISPREDICTED, b"-": 0}
SHORTEST_ENTRY = len("0x1/0x2 ")

addresses = st.integers(0, 2**64 - 1).map(lambda value: f"0x{value:x}")
entries = st.builds(
    lambda f, t, letter, cycles: f"{f}/{t}/{letter}/-/-/{cycles}",
    addresses, addresses, st.sampled_from("PM-"), st.integers(0, 0xFFFF),
)  # fmt: skip
lines = st.lists(entries, min_size=1, max_size=40).map("  ".join)
# Bytes that come near to what is looked for.
pieces = st.sampled_from(
    [b"0x", b"4005dc", b"/", b"P", b"/-", b"-", b" ", b"\n", b"\t", b":", b"(", b")", b"1.5: ",
     b"7/8", b"PERF_RECORD_MMAP2 ", b"[unknown]", b"+0x1c", b"#", b"\r", b"\xff", b"cycles: ",
     b"/P/-/-/4", b" 0x10/0x20/P/-/-/4", b" 0x10/0x20", b"12\n",
     b"      4002838360", b"         5080022 ", b"|OP ", b"             100", b"ffff888100000010"]
)  # fmt: skip
texts = st.lists(pieces, max_size=60).map(b"".join)


def survey_of(*chunks: bytes) -> Survey:
    survey, base = Survey(), 0
    for chunk in chunks:
        survey.add(chunk, base)
        base += len(chunk)
    return survey


def read(text: bytes) -> ReadSamples:
    ended = text + b"\n\n"
    return SampleReader(survey_of(ended)).read(ended, 0, OpenSample())


def stacks(found: ReadSamples) -> list[list[list[int]]]:
    ends = [0, *found.samples["end"].tolist()]
    return [found.entries[a:b].tolist() for a, b in pairwise(ends)]


@given(st.lists(lines, min_size=1, max_size=5))
def test_entries_are_those_of_a_regular_expression(content: list[str]) -> None:
    raw = [line.encode() for line in content]
    expected = [
        [[int(f, 16), int(t, 16), LETTERS[p] | int(c) << 4] for f, t, p, c in ENTRY.findall(line)]
        for line in raw
    ]
    assert stacks(read(b"\n".join(b" " + line for line in raw))) == expected


@settings(max_examples=300)
@given(texts)
def test_any_bytes_are_read_without_harm(content: bytes) -> None:
    found = read(content)
    assert len(found.entries) <= len(content) // SHORTEST_ENTRY + 1
    assert (found.samples["end"][1:] >= found.samples["end"][:-1]).all()
    assert found.samples["end"].tolist()[-1:] in ([], [len(found.entries)])
    if len(found.offsets):  # stacks hold symbols
        assert set(found.entries[:, :2].ravel().tolist()) == set(found.names)
        assert all(name in content for name in found.names.values())
    assert min(found.losses.values()) >= 0


def facts(survey: Survey) -> tuple[object, ...]:
    return (
        survey.is_timed, survey.is_hybrid, survey.has_symbols, survey.event_names, survey.records,
        survey.has_accesses,
    )  # fmt: skip


@settings(max_examples=200)
@example(b"", b"4005dc12\n4005dc", b"")  # a call stack that a blank line in the next part ends
@given(texts, texts, texts)
def test_a_survey_may_be_made_in_parts(first: bytes, second: bytes, third: bytes) -> None:
    chunks = [first + b"\n 0x10/0x20/P/-/-/4\n", second + b"\n", third + b"\n"]
    in_turn, merged, base = survey_of(*chunks), survey_of(chunks[0]), len(chunks[0])
    assert merged.has_seen_entries
    for chunk in chunks[1:]:
        part = merged.part()
        part.add(chunk, base)
        base += len(chunk)
        merged.merge(part)
    assert facts(merged) == facts(in_turn)
    samples = [SampleReader(s).read(b"".join(chunks), 0, OpenSample()) for s in (merged, in_turn)]
    assert stacks(samples[0]) == stacks(samples[1])
    assert samples[0].losses == samples[1].losses
    assert samples[0].samples.tolist() == samples[1].samples.tolist()


@settings(max_examples=200)
@example(b"4005dc12\n4005dc", 9)
@given(texts, st.integers(0, 60))
def test_it_does_not_show_where_a_text_was_cut(content: bytes, at: int) -> None:
    cut = content.rfind(b"\n", 0, at) + 1
    first, second = content[:cut], content[cut:] + b"\n\n"
    survey, whole = survey_of(first, second), read(content)
    assert survey.event_names == survey_of(content).event_names
    reader = SampleReader(survey)
    one = reader.read(first, 0, OpenSample())
    two = reader.read(second, cut, one.after)
    assert stacks(one) + stacks(two) == stacks(whole)
    for name in ("pid", "tid", "time", "event", "ip", "weight", "address", "data_source"):
        halves = one.samples[name].tolist() + two.samples[name].tolist()
        assert halves == whole.samples[name].tolist()
    for reason, count in whole.losses.items():
        assert one.losses[reason] + two.losses[reason] == count  # type: ignore[literal-required]


@pytest.mark.parametrize("cut", range(1, 24))
def test_no_part_of_an_entry_is_an_entry_where_others_are_whole(cut: int) -> None:
    entry = b"0x4005c8/0x4005dc/P/-/-/4"
    found = read(b" " + entry + b"\n " + entry[:-cut])
    assert stacks(found)[0] == [[0x4005C8, 0x4005DC, PREDICTED | 4 << 4]]
    assert len(found.entries) == 1
