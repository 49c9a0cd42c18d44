from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from lbr2pgo.sources.registers import intel_lbr as lbr
from lbr2pgo.sources.registers.intel_msr import decode
from lbr2pgo.sources.registers.msr_device import read_registers
from lbr2pgo.support.errors import InputError, MissingToolError


def test_a_ring_without_a_filter_register_is_read_without_it(tmp_path: Path) -> None:
    device = write_device(tmp_path / "msr", {0x1C9: 1, 0x41: 0x10, 0x61: 0x20})
    names = {register.key for register in read_registers(device, lbr.CORE, 4)}
    assert "MSR_LBR_SELECT" not in names
    assert {"MSR_LBR_TOS", "MSR_LBR_CORE_FROM_3"} <= names


def write_device(path: Path, registers: dict[int, int]) -> Path:
    """A sparse file that stands for /dev/cpu/N/msr."""
    with path.open("wb") as stream:
        stream.truncate(8 * 0x2000)
        for number, value in registers.items():
            os.pwrite(stream.fileno(), struct.pack("<Q", value), 8 * number)
    return path


def test_a_sparse_file_stands_for_the_device(tmp_path: Path) -> None:
    registers = {0x1C9: 1, 0x1D9: 1, 0x1C8: 1}
    registers |= {0x680 + i: 0x1000 + i for i in range(32)} | {0x6C0 + i: 0x2000 for i in range(32)}
    registers |= {0xDC0 + i: 1 << 63 | i for i in range(32)}
    device = write_device(tmp_path / "msr", registers)
    ring = decode(read_registers(device, lbr.MODEL_SPECIFIC, 32), "msr")
    assert [e.source for e in ring.entries[:3]] == [0x1001, 0x1000, 0x101F]
    assert ring.entries[2].flags == 1 | 31 << 4
    assert ring.recording is True


def test_architectural_device(tmp_path: Path) -> None:
    registers = {0x14CE: 0x7F0004, 0x14CF: 8, 0x1500: 0x10, 0x1600: 0x20}
    device = write_device(tmp_path / "msr", registers)
    ring = decode(read_registers(device, lbr.ARCHITECTURAL, 8), "msr")
    assert [(e.source, e.target) for e in ring.entries] == [(0x10, 0x20)]
    assert ring.recording is False


def test_a_device_that_ends_early(tmp_path: Path) -> None:
    device = tmp_path / "msr"
    device.write_bytes(bytes(8 * 0x690))
    with pytest.raises(InputError, match="register 0x6c0 lies behind the end"):
        read_registers(device, lbr.MODEL_SPECIFIC, 16)


def test_a_device_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match="No such file") as caught:
        read_registers(tmp_path / "msr", lbr.MODEL_SPECIFIC, 16)
    assert "modprobe msr" in (caught.value.cure or "")


def test_a_device_that_is_for_root_alone(tmp_path: Path) -> None:
    device = write_device(tmp_path / "msr", {})
    device.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        with pytest.raises(MissingToolError, match="Permission denied") as caught:
            read_registers(device, lbr.MODEL_SPECIFIC, 16)
    finally:
        os.seteuid(user)
    assert "root alone" in (caught.value.cure or "")
