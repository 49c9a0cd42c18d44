"""What recordings tell the place of kernel code by."""

from __future__ import annotations

from pathlib import Path

from builders import kernels
from builders.recordings import STATIC

from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.kernel import anchored
from lbr2pgo.program.elf.layout import MODULE
from lbr2pgo.program.elf.modules import BASE


def test_a_kernel_has_its_first_symbols_a_module_its_code_and_a_program_nothing(
    tmp_path: Path,
) -> None:
    vmlinux = Image.open(kernels.kernel(tmp_path / "vmlinux"))
    at = kernels.LINKED
    assert anchored(vmlinux).layout.anchors == {"_text": at, "_stext": at}
    module = Image.open(kernels.module(tmp_path / "x.ko"))
    assert anchored(module).layout.anchors == {MODULE: BASE}
    program = Image.open(STATIC)
    assert anchored(program) is program


def test_a_stripped_kernel_begins_with_its_text(run, tmp_path: Path) -> None:
    vmlinux = kernels.kernel(tmp_path / "vmlinux")
    run("strip", vmlinux)
    assert anchored(Image.open(vmlinux)).layout.anchors == {"_text": kernels.LINKED}
