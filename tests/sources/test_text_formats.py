"""Each text is taken by one format at most, and no text that is no profile by any."""

from __future__ import annotations

import pytest
from builders.fixtures import ROOT

from lbr2pgo.sources import autofdo_text, preaggregated, saved_counts
from lbr2pgo.sources.base import SNIFF_SIZE, Sniff, SourceFormat
from lbr2pgo.sources.perf_script import reader as perf_script

FORMATS: dict[str, SourceFormat] = {
    "autofdo_text": autofdo_text.FORMAT,
    "perf_script": perf_script.FORMAT,
    "preaggregated": preaggregated.FORMAT,
    "saved_counts": saved_counts.FORMAT,
}

PROFILES = {
    "perf_script": [
        b" 4002948a68 0x4002948a86/0x4002948a68/P/-/-/4/ \n",
        b"1\n 4005dc 0x4005c8/0x4005dc/P/-/-/0\n",
        b"# ========\n# captured on    : Sat\n",
        b"PERF_RECORD_MMAP2 7/7: [0x400000(0x1000) @ 0 00:1d 5 6]: r-xp /bin/x\n",
        b"\t 4005dc\n\t 400634\n 0x4005c8/0x4005dc/P/-/-/0\n",
        b"E 12 1.000000: cycles: 4005dc main+0x1 (/bin/x)\n",
        b"   B    12     1.000000: cycles:           4005dc main+0x1 (/bin/x)\n",
    ],
    "preaggregated": [b"B 5c99d9 5c99c0 4 2\n", b"E cycles\nT 4b196f 4b19e0 4b19ef 2\n"],
    "autofdo_text": [b"1\n870-8bf:2\n0\n", b"0\n1\n870->8bf:2\n", b"0\n0\n0\n"],
}
NO_PROFILES = [
    b"Hello, world.\n", b"main:1234:56\n 1: 56\n", b"1 main 5a 1 main 60 0 12\n", b"mode: 3\n",
    b"{\n  \"a\": 1\n}\n", b"<html>\n<body>\n", b"a,b,c\n1,2,3\n", b"AMD uProf (Version:4.2)\n",
    b"boltedcollection\n", b"no_lbr cycles:u:\n", b"\x7fELF\x02\x01\x01\0", b"#!/bin/sh\nexit 1\n",
    b"---\nheader:\n  profile-version: 1\n", b"12 13 14\n", b"dead beef\n", b"PERFILE2h\0\0\0\0",
    b"/usr/bin/x /usr/lib/y\n", b"0x680: 0x4005c8\n",
]  # fmt: skip


def answers(head: bytes) -> dict[str, Sniff]:
    return {name: fmt.sniff(head[:SNIFF_SIZE]) for name, fmt in FORMATS.items()}


@pytest.mark.parametrize(
    ("name", "head"), [(name, head) for name, heads in PROFILES.items() for head in heads]
)
def test_a_profile_is_of_one_format(name: str, head: bytes) -> None:
    assert {n for n, answer in answers(head).items() if answer is Sniff.YES} == {name}


@pytest.mark.parametrize("head", NO_PROFILES)
def test_what_is_no_profile_is_of_none(head: bytes) -> None:
    assert set(answers(head).values()) == {Sniff.NO}


def test_source_files_are_no_profiles() -> None:
    sources = [*ROOT.glob("lbr2pgo/program/*.py"), ROOT / "pyproject.toml"]
    assert len(sources) > 3
    for path in sources:
        assert set(answers(path.read_bytes()).values()) == {Sniff.NO}, path


@pytest.mark.parametrize(
    ("name", "head"), [(name, head) for name, heads in PROFILES.items() for head in heads]
)
def test_no_beginning_of_a_profile_is_refused(name: str, head: bytes) -> None:
    for size in range(len(head)):
        if name == "perf_script" and b"\n" not in head[:size]:
            continue  # one line's beginning may be anything
        assert FORMATS[name].sniff(head[:size]) is not Sniff.NO, head[:size]
