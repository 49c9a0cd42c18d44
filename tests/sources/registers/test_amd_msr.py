"""Dumps of AMD's branch registers, written here from the layout of their bits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders.sources import LAYOUT

from lbr2pgo.counting.count import count
from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_stacks import MISPREDICTED, PREDICTED, SPEC_SHIFT
from lbr2pgo.sources import formats, open_source
from lbr2pgo.sources.base import Sniff, StackSource
from lbr2pgo.sources.registers.amd_msr import FIRST, RESERVED, SPECULATIVE, VALID
from lbr2pgo.support.errors import InputError

A, B, C = 0x2800, 0x2810, 0x2820
MISSED = 1 << 63
KERNEL = 0xFFFFFFFF81000000
WRONG, RIGHT, GUESSED = (n << SPEC_SHIFT for n in (1, 2, 3))

Pair = tuple[int, int]


def text(pairs: list[Pair], extra: str = "") -> str:
    return extra + "".join(
        f"{FIRST + 2 * i:#x} {a:#x}\n{FIRST + 2 * i + 1:#x} {b:#x}\n"
        for i, (a, b) in enumerate(pairs)
    )


def opened(path: Path, content: str) -> StackSource:
    path.write_text(content)
    source = open_source(path)
    assert isinstance(source, StackSource)
    return source


def test_the_first_pair_is_the_newest(tmp_path: Path) -> None:
    pairs = [(A | MISSED, B | VALID), (C, A | VALID | SPECULATIVE), (B, C | SPECULATIVE), (0, 0)]
    source = opened(tmp_path / "dump", text(pairs))
    (batch,) = source.batches()
    assert batch.entries.tolist() == [
        [A, B, MISPREDICTED | RIGHT], [C, A, PREDICTED | GUESSED], [B, C, PREDICTED | WRONG],
    ]  # fmt: skip
    assert source.info.details["depth"] == "4"
    assert source.info.machine == "x86_64"


def test_names_and_json(tmp_path: Path) -> None:
    names = {
        "MSR_AMD_SAMP_BR_FROM_0": A, "MSR_AMD_SAMP_BR_TO_0": B | VALID,
        "LastBranchStackFromIp1": C, "LastBranchStackToIp1": A | VALID, "IA32_APERF": 5,
    }  # fmt: skip
    content = json.dumps({name: hex(value) for name, value in names.items()})
    source = opened(tmp_path / "dump", content)
    (batch,) = source.batches()
    assert batch.entries[:, :2].tolist() == [[A, B], [C, A]]
    assert source.health() == {"registers that are no branch registers": 1}


def test_kernel_addresses_are_sign_extended(tmp_path: Path) -> None:
    low = (1 << 58) - 1
    (batch,) = opened(tmp_path / "dump", text([(KERNEL & low, KERNEL & low | VALID)])).batches()
    assert batch.entries[0, :2].tolist() == [KERNEL, KERNEL]


def test_wrong_paths_and_erratum_1452_are_lost_and_counted(tmp_path: Path) -> None:
    low = (1 << 58) - 1
    pairs = [
        (B, C | VALID), (C, A | VALID | RESERVED), (C, KERNEL & low | VALID | RESERVED),
        (C, A | SPECULATIVE), (0x2830, 0x2840 | VALID),
    ]  # fmt: skip
    counts = count(opened(tmp_path / "dump", text(pairs)), LAYOUT).counts
    losses = waterfall.losses_of(counts.tallies, "branches_in_image")
    assert losses == {"bogus_target": 2, "wrong_path": 1}
    assert counts.branches().from_.tolist() == [B, 0x2830]
    assert len(counts.runs()) == 0


def test_the_filter_is_said_in_words(tmp_path: Path) -> None:
    select = "0xc000010e 0x4\n"  # no conditional branches
    source = opened(tmp_path / "dump", text([(A, B | VALID)], select))
    assert "not conditional branches" in source.info.details["filter"]
    counts = count(opened(tmp_path / "dump", text([(A, B | VALID)] * 2, select)), LAYOUT).counts
    assert len(counts.runs()) == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (text([(A, B)])[: text([(A, B)]).index("\n") + 1] + "0xc0010303 0x1\n",
         "register 0xc0010301 is missing"),
        (text([(A, B)]) + "MSR_AMD_SAMP_BR_TO_0 0x5\n", "stands here a second time"),
        (text([(A, B)]) + "0xc0010302 zero\n", "not a hexadecimal value"),
    ],
)  # fmt: skip
def test_bad_dumps_name_the_line_or_register(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "dump").write_text(content)
    with pytest.raises(InputError, match=message):
        open_source(tmp_path / "dump")


def test_no_other_format_takes_it() -> None:
    head = text([(A, B)]).encode()
    assert [form.name for form in formats() if form.sniff(head) is Sniff.YES] == ["amd-msr"]
