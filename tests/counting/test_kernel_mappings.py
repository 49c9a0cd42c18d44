"""Kernels and modules in recordings that tests write: what was moved is found again."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import kernels
from builders.outputs import outputs

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.model.incomplete import EmptyProfileError
from lbr2pgo.program.program import Program
from lbr2pgo.support.errors import InputError

KASLR = 0x1C000000
MODULE_AT = 0xFFFFFFFFC0A12000


@pytest.fixture(scope="module")
def vmlinux(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kernels.kernel(tmp_path_factory.mktemp("kernel") / "vmlinux")


@pytest.fixture(scope="module")
def ko(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kernels.module(tmp_path_factory.mktemp("module") / "snd-toy.ko")


def build_id(path: Path) -> str:
    found = Program.open(path).image.build_id
    assert found is not None
    return found


def profile(recording: Path, binary: Path) -> tuple[bytes, dict[str, int]]:
    out = recording.with_suffix(".prof")
    done = convert(ConvertOptions((recording,), binary, outputs=outputs(llvm=out)))
    return out.read_bytes(), dict(done.tallies)


@pytest.fixture(scope="module")
def expected(vmlinux: Path, tool, run, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """llvm-profgen's profile of the same loop in a kernel that was moved."""
    folder = tmp_path_factory.mktemp("expected")
    source, target = (address + KASLR for address in kernels.loop(Program.open(vmlinux)))
    at = kernels.LINKED + KASLR
    lines = [f"PERF_RECORD_MMAP -1/0: [{at:#x}(0x100000) @ {at:#x}]: x [kernel.kallsyms]_text"]
    entry = f"{source:#x}/{target:#x}/P/-/-/0"
    lines += [" ".join([f" {source:x}", *[entry] * n]) for n in (4, 2, 1)]
    (folder / "perf.txt").write_text("\n".join(lines) + "\n")
    run(tool("llvm-profgen-22"), "--kernel", f"--binary={vmlinux}", "--format=text",
        f"--perfscript={folder / 'perf.txt'}", "--use-dwarf-correlation", "-o",
        folder / "out.prof")  # fmt: skip
    assert profile(folder / "perf.txt", vmlinux)[0] == (folder / "out.prof").read_bytes()
    return (folder / "out.prof").read_bytes()


@pytest.mark.parametrize("symbol", ["_text", "_stext"])
@pytest.mark.parametrize("bias", [0, KASLR])
def test_a_kernel_that_was_moved_is_found(
    vmlinux: Path, expected: bytes, tmp_path: Path, symbol: str, bias: int
) -> None:
    at = kernels.LINKED + bias
    records = kernels.mapped(f"[kernel.kallsyms]{symbol}", at, at)
    records += kernels.stacks(Program.open(vmlinux), bias)
    names = {"[kernel.kallsyms]": build_id(vmlinux)}
    found, tallies = profile(kernels.recording(tmp_path / "k.data", records, names), vmlinux)
    assert found == expected
    assert tallies["branches_in_image"] == 7
    assert tallies["branches_in_image/outside"] == 1
    assert tallies["runs_valid"] == 4


def test_a_guests_kernel_is_found(vmlinux: Path, expected: bytes, tmp_path: Path) -> None:
    at = kernels.LINKED + KASLR
    records = kernels.mapped("[guest.kernel.kallsyms]_text", at, at, pid=0)
    records += kernels.stacks(Program.open(vmlinux), KASLR)
    path = kernels.recording(tmp_path / "k.data", records)
    assert profile(path, vmlinux)[0] == expected


def test_another_kernel_is_refused(vmlinux: Path, tmp_path: Path) -> None:
    records = kernels.mapped("[kernel.kallsyms]_text", kernels.LINKED, kernels.LINKED)
    records += kernels.stacks(Program.open(vmlinux), 0)
    other = {"[kernel.kallsyms]": "ab" * 20}
    path = kernels.recording(tmp_path / "k.data", records, other)
    with pytest.raises(InputError, match="another build than the recorded"):
        profile(path, vmlinux)
    user = kernels.recording(tmp_path / "u.data", kernels.mapped("/bin/true", 0x1000, 0, pid=7))
    with pytest.raises(InputError, match="no process in this recording mapped"):
        profile(user, vmlinux)


@pytest.mark.parametrize(
    "name", ["/lib/modules/6.1/kernel/sound/snd-toy.ko.xz", "[snd_toy]", "/x/snd-toy.ko"]
)
def test_a_module_is_found_where_it_was_loaded(
    ko: Path, expected: bytes, tmp_path: Path, name: str
) -> None:
    program = Program.open(ko)
    text = program.image.section(".text")
    assert text is not None
    records = kernels.mapped("[kernel.kallsyms]_text", kernels.LINKED, kernels.LINKED)
    records += kernels.mapped(name, MODULE_AT, 0) + kernels.mapped(
        "[other]", MODULE_AT + 0x200000, 0
    )
    records += kernels.stacks(program, MODULE_AT - text.address)
    for identity in ({}, {name: build_id(ko)}):
        path = kernels.recording(tmp_path / "m.data", records, identity)
        assert profile(path, ko)[0] == expected
    with pytest.raises(InputError, match="another build"):
        profile(kernels.recording(tmp_path / "m.data", records, {name: "cd" * 20}), ko)


def test_a_module_that_was_not_loaded_has_no_counts(ko: Path, tmp_path: Path) -> None:
    records = kernels.mapped("[other]", MODULE_AT, 0) + kernels.stacks(Program.open(ko), 0)
    with pytest.raises((InputError, EmptyProfileError)):
        profile(kernels.recording(tmp_path / "m.data", records), ko)


def test_a_real_module_from_its_etm_trace(corpus, tmp_path: Path) -> None:
    """google/autofdo's ranges and branches, by file offsets, of an Android driver."""
    ko = corpus("autofdo/test_kernel_module.ko.zst")
    path = corpus("autofdo/test_kernel_module.textprof")
    out = tmp_path / "out.prof"
    done = convert(ConvertOptions((path,), ko, outputs=outputs(llvm=out)))
    assert done.tallies["runs_valid"] >= 0.9999 * done.tallies["runs_in_image"]
    assert done.tallies["runs_located"] == done.tallies["runs_valid"]
    assert out.read_text().startswith("zram_submit_bio:")


def test_a_real_trace_of_a_kernel_is_read(corpus, vmlinux: Path) -> None:
    """perf inject's stacks of Arm ETM; the kernel itself is not at hand, and that is said."""
    path = corpus("autofdo/perf-kernel.data.zst")
    with pytest.raises(InputError, match="recorded on aarch64"):
        convert(ConvertOptions((path,), vmlinux))
