"""Read last-branch registers straight from a core, through /dev/cpu/N/msr.

The device gives the eight bytes of register `r` at offset `r` (msr(4)), so neighbouring registers
overlap; a regular file that stands for it holds register `r` at offset `8 * r`.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

from lbr2pgo.sources.registers import intel_lbr as lbr
from lbr2pgo.sources.registers.register_dump import Register
from lbr2pgo.support.errors import InputError, MissingToolError

_CURES = {
    errno.ENOENT: "Load the driver (modprobe msr), and name a processor that is there.",
    errno.ENXIO: "Name a processor that is online (/sys/devices/system/cpu/online).",
    errno.EACCES: "Registers of a core are for root alone: use sudo.",
    errno.EPERM: "This needs CAP_SYS_RAWIO (use sudo), and a kernel without lockdown.",
    errno.EIO: "The processor hasn't this register, or a hypervisor hides it.",
}


def read_registers(device: Path, bank: lbr.Bank, depth: int) -> tuple[Register, ...]:
    """Control registers and a ring of `depth` entries.

    Raises InputError for an impossible depth and where a register can't be read, MissingToolError
    where the device may not be opened, each with the reason.
    """
    lbr.check_depth(bank, depth)
    try:
        descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise MissingToolError(
            f"can't be opened: {error.strerror}",
            where=str(device),
            cure=_CURES.get(error.errno or 0),
        ) from error
    try:
        stride = 1 if stat.S_ISCHR(os.fstat(descriptor).st_mode) else 8
        return tuple(
            Register(name, _read(descriptor, number, stride, f"{device}, {name}"), str(device))
            for name, number in _wanted(bank, depth)
        )
    finally:
        os.close(descriptor)


def _wanted(bank: lbr.Bank, depth: int) -> Iterator[tuple[str, int]]:
    """Names and numbers of what to read; control registers first, while the ring may move."""
    if bank is lbr.ARCHITECTURAL:
        yield from (("IA32_LBR_CTL", lbr.ARCH_LBR_CTL), ("IA32_LBR_DEPTH", lbr.ARCH_LBR_DEPTH))
    else:
        yield from (
            ("IA32_DEBUGCTL", lbr.IA32_DEBUGCTL),
            ("IA32_PERF_CAPABILITIES", lbr.PERF_CAPABILITIES),
            *((("MSR_LBR_SELECT", lbr.LBR_SELECT),) if bank.has_select else ()),
            ("MSR_LBR_TOS", lbr.LBR_TOS),
        )
    for i in range(depth):
        yield bank.names[0].format(i), bank.source + i
        yield bank.names[1].format(i), bank.target + i
        if bank.info is not None and bank.has_info(depth):
            yield bank.names[2].format(i), bank.info + i


def _read(descriptor: int, number: int, stride: int, where: str) -> int:
    try:
        data = os.pread(descriptor, 8, number * stride)
    except OSError as error:
        raise InputError(
            f"register {number:#x} can't be read: {error.strerror}",
            where=where,
            cure=_CURES.get(error.errno or 0),
        ) from error
    if len(data) != 8:
        raise InputError(f"register {number:#x} lies behind the end", where=where)
    return int(struct.unpack("<Q", data)[0])
