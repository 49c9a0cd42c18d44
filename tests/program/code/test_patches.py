"""What kernels change while they run: jumps that may go on."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from builders import kernels
from builders.outputs import outputs
from builders.recordings import STATIC

from lbr2pgo.cli.waterfall import print_waterfall
from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program


@pytest.fixture(scope="module")
def vmlinux(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kernels.kernel(tmp_path_factory.mktemp("keyed") / "vmlinux", code=kernels.KEYED)


def test_static_keys_and_alternatives_are_conditional(vmlinux: Path) -> None:
    program = Program.open(vmlinux)
    assert len(program.patches.address) == 3
    table = program.branches
    rows = table.index_of(program.patches.address)
    assert (table.kind[rows] == Kind.COND).all()
    keys = program.patches.has_target
    assert (table.target[rows][keys] == program.patches.target[keys]).all()
    assert keys.tolist() == [True, True, False]


def test_a_run_over_them_is_valid_and_counted(vmlinux: Path, tmp_path: Path) -> None:
    program = Program.open(vmlinux)
    at = kernels.LINKED
    records = kernels.mapped("[kernel.kallsyms]_text", at, at) + kernels.stacks(program, 0)
    path = kernels.recording(tmp_path / "perf.data", records)
    done = convert(ConvertOptions((path,), vmlinux, outputs=outputs(llvm=tmp_path / "p")))
    assert done.tallies["runs_valid"] == done.tallies["runs_patched"] == 4
    shown = io.StringIO()
    print_waterfall(done.tallies, shown)
    assert "4 valid fall-throughs run over instructions that the kernel" in shown.getvalue()


def test_programs_have_none() -> None:
    assert len(Program.open(STATIC).patches.address) == 0


def test_a_real_modules_tables_are_read(corpus) -> None:
    program = Program.open(corpus("autofdo/test_kernel_module.ko.zst"))
    keys = program.patches.has_target
    assert keys.sum() == 0x220 // 16
    assert (~keys).sum() == 0x4E0 // 12
    assert (program.regions.containing(program.patches.address) >= 0).all()
