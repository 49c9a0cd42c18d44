"""A small kernel and a module of one source, and recordings of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from builders import perf_data as build
from builders.perf_data import Event, Sample

from lbr2pgo.program.program import Program

SOURCE = r"""
extern int outside(int);
__asm__(".section .modinfo, \"a\"\n.asciz \"license=GPL\"\n.text\n");
volatile int sink;
__attribute__((cold, noinline)) void slow(int n) { sink = n; }
__attribute__((noinline)) int count(int n) {
  int total = 0;
  for (int i = 0; i < n; i++) {
    total += sink;
    if (__builtin_expect(total == 7, 0)) slow(total);
  }
  return total;
}
__attribute__((section(".init.text"))) int start(void) { return count(5); }
"""
LINKED = 0xFFFFFFFF81000000
_FLAGS = (
    "-O2", "-g", "-mcmodel=kernel", "-fno-pic", "-fno-pie", "-fcf-protection=none",
    "-ffreestanding", "-fno-asynchronous-unwind-tables", "-nostdlib",
)  # fmt: skip
EVENT = Event()


KEYED = r"""
volatile int sink;
__attribute__((noinline)) int count(int n) {
  int total = 0;
  for (int i = 0; i < n; i++) {
    __asm__ goto("1: .byte 0xe9; .long %l[off] - 2f\n2:\n.pushsection __jump_table, \"aw\"\n"
                 ".long 1b - ., %l[off] - .\n.quad 0\n.popsection" : : : : off);
    total += sink;
    __asm__ goto("1: .byte 0x0f, 0x1f, 0x44, 0, 0\n.pushsection __jump_table, \"aw\"\n"
                 ".long 1b - ., %l[off] - .\n.quad 0\n.popsection" : : : : off);
    total ^= sink;
off:
    __asm__ volatile("1: jmp 2f\n2:\n.pushsection .altinstructions, \"a\"\n"
                     ".long 1b - ., 0, 0\n.word 0\n.popsection");
    total += sink;
  }
  return total;
}
"""
"""With static keys, one a jump and one a no-op, and an alternative that is a jump."""


def compiled(target: Path, *flags: str, code: str = SOURCE, compiler: str = "gcc") -> Path:
    """The source made to a file."""
    source = target.with_suffix(".c")
    source.write_text(code)
    command = [compiler, *_FLAGS, *flags, "-Wl,--build-id", "-o", target, source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


def kernel(target: Path, *flags: str, code: str = SOURCE, compiler: str = "gcc") -> Path:
    """A kernel: linked where x86-64's is, with the symbols that perf places it by."""
    symbols = [f"-Wl,--defsym={name}={LINKED:#x}" for name in ("_text", "_stext")]
    place = (f"-Wl,-Ttext={LINKED:#x}", "-Wl,-e,count", "-Wl,-z,max-page-size=4096")
    return compiled(
        target, "-static", "-no-pie", *place, *symbols, *flags, code=code, compiler=compiler
    )


def module(target: Path, *flags: str) -> Path:
    """A module: an object file, as ld -r leaves it."""
    return compiled(target, "-r", *flags)


def loop(program: Program) -> tuple[int, int]:
    """The branch of the loop in `count`, by image addresses."""
    table, row = program.branches, program.symbols.by_name("count")
    assert row is not None
    start, end = int(program.symbols.start[row]), int(program.symbols.end[row])
    backward = (table.address < end) & (table.target >= start) & (table.target < table.address)
    at = int((backward & table.has_target).nonzero()[0][0])
    return int(table.address[at]), int(table.target[at])


def stacks(program: Program, bias: int, *, pid: int = 7) -> bytes:
    """Three samples of the loop, in a kernel that was moved so far, and one of a user's code."""
    source, target = loop(program)
    entry = ((source + bias) % 2**64, (target + bias) % 2**64, 2)
    user = ((0x401010, 0x401000, 2),)
    return b"".join(
        Sample(stack, ip=entry[0], pid=pid, tid=pid, time=10).encode(EVENT)
        for stack in ((entry,) * 4, (entry,) * 2, (entry,), user)
    )


def mapped(path: str, start: int, offset: int, *, pid: int = -1, identity: str = "") -> bytes:
    """As perf says where kernel code is."""
    return build.mmap2(
        pid, start, 0x100000, path, EVENT.trailer(0, 0, 0), misc=1, protection=0, offset=offset
    )


def recording(path: Path, records: bytes, build_ids: dict[str, str] | None = None) -> Path:
    """A perf.data with these records, and build-ids in its header."""
    table = [build.build_id_record(n, bytes.fromhex(i)) for n, i in (build_ids or {}).items()]
    path.write_bytes(build.file_form([EVENT], records, {2: b"".join(table)} if table else {}))
    return path
