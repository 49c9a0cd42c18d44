from __future__ import annotations

import json

import pytest

from lbr2pgo.sources.registers.register_dump import parse
from lbr2pgo.support.errors import InputError

REGISTERS = [("0x1C9", 5), ("0x680", 0xFFFF_FFFF_8100_0000)]
NUMBERS = [(0x1C9, 5), (0x680, 0xFFFF_FFFF_8100_0000)]

FORMS = {
    "columns": "".join(f"{n:#x} {v:#x}\n" for n, v in NUMBERS),
    "colons": "".join(f"{n:#x}: {v:#018x}\n" for n, v in NUMBERS),
    "rdmsr": "".join(f"rdmsr {n:x} = {v:x}\r\n" for n, v in NUMBERS),
    "comments": "# core 3\n\n" + "".join(f"{n:#x}\t{v:#x}  # {n}\n" for n, v in NUMBERS),
    "object": json.dumps({f"{n:#x}": v for n, v in NUMBERS}),
    "list": json.dumps([{"address": n, "value": f"{v:#x}"} for n, v in NUMBERS]),
    "nested": json.dumps({"cpu": 3, "msrs": {f"{n:#x}": v for n, v in NUMBERS}}),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_tells_the_same(form: str) -> None:
    found = parse(FORMS[form], "dump")
    assert [(each.key.upper(), each.value) for each in found if each.key.upper() != "CPU"] == [
        (key.upper(), value) for key, value in REGISTERS
    ]


def test_names_are_upper_case_and_doubled_registers_stay() -> None:
    found = parse("msr_lbr_tos 1\nMSR_LBR_TOS 2\n", "dump")
    assert [(each.key, each.value) for each in found] == [("MSR_LBR_TOS", 1), ("MSR_LBR_TOS", 2)]


def test_places_are_lines_or_keys() -> None:
    (_, second) = parse("0x1c9 1\n# nothing\n0x680 2\n", "dump")
    assert second.where == "dump:3"
    (only,) = parse('{"0x1c9": 1}', "dump")
    assert only.where.startswith("dump")
    assert "0x1c9" in only.where


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0x1c9 1\nzebra\n", "dump:2: is not a register and its value"),
        ("0x1c9 zebra\n", "dump:1: 'zebra' is not a hexadecimal value"),
        ('{"0x1c9": ', "is no valid JSON"),
        ('{"0x1c9": -1}', "'-1' is not a value of 64 bits"),
    ],
)
def test_what_is_no_register_is_named(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text, "dump")
    assert message in str(caught.value)
