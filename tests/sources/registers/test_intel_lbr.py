from __future__ import annotations

from lbr2pgo.sources.registers import intel_lbr as lbr


def test_the_number_of_a_model_tells_its_ring() -> None:
    numbers = (0x17, 0x1C, 0x37, 0x57, 0x2C, 0x3E, 0x4F, 0x55, None)
    assert [lbr.model_of(6, number) for number in numbers] == [
        "core2", "bonnell", "silvermont", "knl", "nehalem", "sandybridge", "haswell", None, None,
    ]  # fmt: skip
    assert lbr.model_of(15, 0x17) is None


def test_unknown_names_are_no_registers() -> None:
    assert lbr.number_of("MSR_LASTBRANCH_9999999999_FROM_IP") is None
    assert lbr.number_of(f"MSR_LBR_INFO_{'9' * 5000}") is None
    assert lbr.number_of("MSR_LBR_INFO_31") == 0xDDF
    assert lbr.number_of("IA32_LBR_5_INFO") == 0x1205
