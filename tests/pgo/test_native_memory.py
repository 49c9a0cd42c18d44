"""What small programs have in memory when they end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from builders.fixtures import Compiled

from lbr2pgo.pgo import native_memory as module
from lbr2pgo.pgo.native_memory import drop_from_cache, memory_use
from lbr2pgo.support.errors import InputError

PAGES = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void on(int number) { (void)number; }
__attribute__((aligned(65536))) int near(int x) { return x + 1; }
#define FAR(n) __attribute__((aligned(65536), noinline)) int far##n(int x) { return x * n; }
FAR(1) FAR(2) FAR(3) FAR(4) FAR(5) FAR(6) FAR(7) FAR(8)
int main(int argc, char **argv) {
  int sum = near(argc);
  signal(SIGUSR1, on);
  raise(SIGUSR1);
  if (argc > 1) sum += far1(1) + far2(1) + far3(1) + far4(1);
  if (argc > 1) sum += far5(1) + far6(1) + far7(1) + far8(1);
  char *memory = malloc(1 << 20);
  memset(memory, sum, 1 << 20);
  return memory[argc] == 0 || (argc > 1 && getchar() != 'x');
}
"""


@pytest.fixture(scope="module")
def program(compiled: Compiled) -> Path:
    return compiled("clang-22", PAGES, "-O1", "-fuse-ld=lld")


def test_code_that_did_not_run_is_not_resident(program: Path, tmp_path: Path) -> None:
    few = memory_use([str(program)], program)
    (tmp_path / "input").write_text("x")
    with (tmp_path / "input").open("rb") as stdin:
        many = memory_use([str(program), "all"], program, stdin)
    # Linux maps 64 KiB around a fault, if it has them: each function lies in such a piece.
    assert 0 < few.resident_code < many.resident_code <= program.stat().st_size
    assert few.page_faults >= (1 << 20) // os.sysconf("SC_PAGE_SIZE")
    assert few.from_disk == many.from_disk == 0


def test_a_program_out_of_the_cache_is_read_again(program: Path) -> None:
    memory_use([str(program)], program)
    cold = memory_use([str(program)], program, cold=True)
    assert cold.resident_code > 0
    assert cold.from_disk <= cold.page_faults
    drop_from_cache(program)


def test_what_can_not_be_traced_is_said(monkeypatch: pytest.MonkeyPatch, program: Path) -> None:
    monkeypatch.setattr(module, "_TRACE_EXIT", 1 << 31)  # an option that the kernel doesn't know
    with pytest.raises(InputError, match="can't be traced: "):
        memory_use([str(program)], program)


def test_a_program_that_a_signal_ends_is_told_too(compiled: Compiled) -> None:
    program = compiled("clang-22", "#include <stdlib.h>\nint main(void) { abort(); }\n")
    assert memory_use([str(program)], program).resident_code > 0
