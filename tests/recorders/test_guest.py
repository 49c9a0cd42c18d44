from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest
from builders.fixtures import Compiled, Tool

from lbr2pgo.recorders.guest import find_guest, refuse_shadow_memory
from lbr2pgo.support.errors import InputError, MissingToolError

Environment = dict[str, str]


def elf(
    machine: int = 62, *, bits: int = 2, order: int = 1, interpreter: str | None = None
) -> bytes:
    """The head of an ELF program."""
    count = 0 if interpreter is None else 1
    head = struct.pack(
        "<4sBB10xHHIQQQIHHHHHH",
        b"\x7fELF", bits, order, 2, machine, 1, 0, 64, 0, 0, 64, 56, count, 64, 0, 0,
    )  # fmt: skip
    if interpreter is None:
        return head
    name = interpreter.encode() + b"\0"
    return head + struct.pack("<IIQQQQQQ", 3, 4, 120, 0, 0, len(name), len(name), 1) + name


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """A PATH with fake emulators and nothing else."""
    for name in ("qemu-x86_64", "qemu-aarch64", "qemu-riscv64"):
        install(tmp_path / "bin" / name, b"#!/bin/sh\n")
    return {"PATH": str(tmp_path / "bin"), "QEMU_LD_PREFIX": str(tmp_path / "sysroot")}


def install(path: Path, content: bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o755)
    return str(path)


def test_a_program_of_this_machine(environment: Environment, tmp_path: Path) -> None:
    program = install(tmp_path / "program", elf(interpreter="/lib64/ld-linux-x86-64.so.2"))
    guest = find_guest((program, "-x", "y"), environment, host="x86_64")
    assert guest.architecture.name == "x86-64"
    assert guest.emulator == str(tmp_path / "bin" / "qemu-x86_64")
    assert (guest.path, guest.arguments) == (program, (program, "-x", "y"))
    assert guest.sysroot is None


def test_a_name_is_found_in_the_path(environment: Environment, tmp_path: Path) -> None:
    program = install(tmp_path / "bin" / "program", elf())
    assert find_guest(("program",), environment, host="x86_64").path == program


def test_a_foreign_program_gets_its_libraries(environment: Environment, tmp_path: Path) -> None:
    program = install(tmp_path / "program", elf(183, interpreter="/lib/ld-linux-aarch64.so.1"))
    install(tmp_path / "sysroot" / "lib" / "ld-linux-aarch64.so.1", b"")
    guest = find_guest((program,), environment, host="x86_64")
    assert guest.emulator.endswith("qemu-aarch64")
    assert guest.sysroot == str(tmp_path / "sysroot")


def test_a_static_foreign_program_needs_none(environment: Environment, tmp_path: Path) -> None:
    program = install(tmp_path / "program", elf(183))
    assert find_guest((program,), environment, host="x86_64").sysroot is None


def test_the_libraries_of_a_foreign_program_are_missing(
    environment: Environment, tmp_path: Path
) -> None:
    program = install(tmp_path / "program", elf(183, interpreter="/lib/ld-linux-aarch64.so.1"))
    with pytest.raises(MissingToolError, match=r"ld-linux-aarch64\.so\.1") as caught:
        find_guest((program,), environment, host="x86_64")
    assert "libc6-arm64-cross" in str(caught.value)


def test_a_program_for_another_c_library_is_told_where_to_name_that(
    environment: Environment, tmp_path: Path
) -> None:
    program = install(tmp_path / "program", elf(243, interpreter="/lib/ld-musl-riscv64.so.1"))
    install(tmp_path / "sysroot" / "lib" / "ld-linux-riscv64-lp64d.so.1", b"")
    with pytest.raises(MissingToolError, match=r"needs /lib/ld-musl-riscv64\.so\.1") as caught:
        find_guest((program,), environment, host="x86_64")
    assert caught.value.cure == (
        "Name the place of its own in QEMU_LD_PREFIX, or link it with -static."
    )


def test_scripts_become_their_interpreters(environment: Environment, tmp_path: Path) -> None:
    shell = install(tmp_path / "shell", elf())
    inner = install(tmp_path / "inner", f"#! {shell}  -e -u \nexit\n".encode())
    outer = install(tmp_path / "outer", f"#!{inner}\n".encode())
    guest = find_guest((outer, "a", "b"), environment, host="x86_64")
    assert guest.path == shell
    assert guest.arguments == (shell, "-e -u", inner, outer, "a", "b")


@pytest.mark.parametrize(
    "content", [b"", b"\x7fEL", b"text\n", b"#!\n", b"#!   \n", b"MZ" + bytes(100)]
)
def test_what_is_no_program(content: bytes, environment: Environment, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        find_guest((install(tmp_path / "program", content),), environment, host="x86_64")


def test_a_script_that_runs_itself(environment: Environment, tmp_path: Path) -> None:
    path = tmp_path / "script"
    install(path, f"#!{path}\n".encode())
    with pytest.raises(InputError):
        find_guest((str(path),), environment, host="x86_64")


@pytest.mark.parametrize("content", [elf(3, bits=1), elf(62, order=2)])
def test_other_classes_of_elf(content: bytes, environment: Environment, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="64-bit little-endian"):
        find_guest((install(tmp_path / "program", content),), environment, host="x86_64")


def test_another_machine(environment: Environment, tmp_path: Path) -> None:
    program = install(tmp_path / "program", elf(258))
    with pytest.raises(InputError, match="another machine"):
        find_guest((program,), environment, host="x86_64")


def test_no_such_program(environment: Environment, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no program nonsense"):
        find_guest(("nonsense",), environment)
    path = tmp_path / "plain"
    path.write_bytes(elf())
    path.chmod(0o644)
    with pytest.raises(InputError, match="may be executed"):
        find_guest((str(path),), environment)


def test_no_emulator(environment: Environment, tmp_path: Path) -> None:
    (tmp_path / "bin" / "qemu-x86_64").unlink()
    program = install(tmp_path / "program", elf())
    with pytest.raises(MissingToolError, match="qemu-x86_64") as caught:
        find_guest((program,), environment)
    assert "apt-get install qemu-user" in str(caught.value)


def test_an_emulator_for_another_architecture_only(
    environment: Environment, tmp_path: Path
) -> None:
    (tmp_path / "bin" / "qemu-aarch64").unlink()
    program = install(tmp_path / "program", elf(183))
    with pytest.raises(MissingToolError, match="qemu-aarch64"):
        find_guest((program,), environment, host="x86_64")


def test_a_static_emulator_loads_no_plugins(environment: Environment, tmp_path: Path) -> None:
    install(tmp_path / "bin" / "qemu-x86_64", elf())
    program = install(tmp_path / "program", elf())
    with pytest.raises(MissingToolError, match="static") as caught:
        find_guest((program,), environment, host="x86_64")
    assert "--enable-plugins" in str(caught.value)
    install(tmp_path / "bin" / "qemu-x86_64", elf(interpreter="/lib64/ld-linux-x86-64.so.2"))
    assert find_guest((program,), environment, host="x86_64").path == program


def test_a_real_program(tool: Tool) -> None:
    tool("qemu-x86_64")
    shell = shutil.which("sh")
    assert shell is not None
    guest = find_guest(("sh", "-c", "true"), host="x86_64")
    assert guest.arguments == ("sh", "-c", "true")


@pytest.mark.parametrize(
    ("compiler", "kind", "name"),
    [
        ("clang-22", "address", "Address"),
        ("clang-22", "thread", "Thread"),
        ("clang-22", "memory", "Memory"),
        ("gcc", "address", "Address"),
    ],
)
def test_shadow_memory_is_refused(compiled: Compiled, compiler: str, kind: str, name: str) -> None:
    program = compiled(compiler, "int main(void) { return 0; }", f"-fsanitize={kind}")
    with pytest.raises(InputError, match=f"has {name}Sanitizer"):
        refuse_shadow_memory(find_guest((str(program),)))


def test_a_compiler_that_knows_the_names_passes(compiled: Compiled) -> None:
    source = 'const char *volatile name = "__asan_init"; int main(void) { return !name; }'
    refuse_shadow_memory(find_guest((str(compiled("clang-22", source)),)))


def test_a_sanitiser_without_shadow_memory_passes(compiled: Compiled) -> None:
    program = compiled("clang-22", "int main(void) { return 0; }", "-fsanitize=undefined")
    refuse_shadow_memory(find_guest((str(program),)))
