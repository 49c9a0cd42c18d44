"""Propeller on a kernel, with the flags of the kernel's own build (scripts/Makefile.propeller)."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import kernels
from builders.outputs import outputs

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.program.program import Program

KASLR = 0x1C000000
CODE = kernels.SOURCE.replace("extern int outside(int);", "")


@pytest.fixture(scope="module")
def build(tool, tmp_path_factory: pytest.TempPathFactory):
    """`build(flags…)`: a kernel by clang and lld."""
    lld = f"--ld-path={tool('ld.lld-22')}"

    def make(*flags: str) -> Path:
        target = tmp_path_factory.mktemp("kernel") / "vmlinux"
        own = ("-ffunction-sections", lld, "-Wno-unused-command-line-argument", *flags)
        return kernels.kernel(target, *own, code=CODE, compiler=tool("clang-22"))

    return make


def converted(vmlinux: Path, prefix: Path, bias: int) -> dict[str, int]:
    program = Program.open(vmlinux)
    at = kernels.LINKED + bias
    records = kernels.mapped("[kernel.kallsyms]_text", at, at) + kernels.stacks(program, bias)
    names = {"[kernel.kallsyms]": program.image.build_id or ""}
    recorded = kernels.recording(prefix.with_suffix(".data"), records, names)
    wanted = outputs(
        propeller=Path(f"{prefix}_cc_profile.txt"), propeller_order=Path(f"{prefix}_ld_profile.txt")
    )
    return dict(convert(ConvertOptions((recorded,), vmlinux, outputs=wanted)).tallies)


def addresses(vmlinux: Path) -> dict[str, int]:
    symbols = Program.open(vmlinux).symbols
    return {symbols.names[row]: int(symbols.start[row]) for row in range(len(symbols))}


def test_a_kernel_that_was_moved_is_laid_out_and_built_again(build, tmp_path: Path) -> None:
    vmlinux = build("-fbasic-block-address-map")
    for name, bias in (("here", 0), ("kernel", KASLR)):
        tallies = converted(vmlinux, tmp_path / name, bias)
        assert tallies["branches_in_image"] == 7
        assert tallies["runs_valid"] == 4
    cc, ld = (tmp_path / f"kernel_{kind}_profile.txt" for kind in ("cc", "ld"))
    assert cc.read_bytes() == (tmp_path / "here_cc_profile.txt").read_bytes()
    assert ld.read_bytes() == (tmp_path / "here_ld_profile.txt").read_bytes()
    assert ld.read_text().split() == ["count", "count.cold"]
    again = build(
        f"-fbasic-block-sections=list={cc}", f"-Wl,--symbol-ordering-file={ld}",
        "-Wl,--no-warn-symbol-ordering",
    )  # fmt: skip
    before, after = addresses(vmlinux), addresses(again)
    assert before["slow"] < before["count"]
    assert kernels.LINKED <= after["count"] < after["count.cold"] < after["slow"]
    assert after["_text"] == kernels.LINKED
