"""Print MANIFEST.toml: every committed file of this directory, its hash and what made it."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
MACHINES = ("x86-64", "aarch64", "riscv64")


def made_by(target: str) -> str:
    """The commands that make runs for a target, as one line."""
    command = ["make", "-s", "-n", "-B", "CURDIR=.", target]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if "mkdir" not in line]
    return " ".join(" ".join(lines).split())


def recorded_by(recording: Path) -> str:
    """The command that recorded a program."""
    machine, program = recording.name.removesuffix(".perf.data").rsplit("-", 1)
    rounds = 3 if program.startswith("interp") else 10
    name = f"recordings/{machine}-{program}"
    return (
        f"lbr2pgo record --emulate -c 9001 -o {name}.perf.data --exact {name}.exact.npz "
        f"-- /tmp/testbins/{machine}/{program} {rounds}"
    )


def entries() -> Iterator[tuple[str, str]]:
    """Each file and its command."""
    for elf in sorted(path for machine in MACHINES for path in HERE.glob(f"{machine}/*")):
        name = str(elf.relative_to(HERE))
        yield name, made_by(name)
    for recording in sorted(HERE.glob("recordings/*.perf.data")):
        command = recorded_by(recording)
        yield f"recordings/{recording.name}", command
        yield f"recordings/{recording.name.replace('.perf.data', '.exact.npz')}", command


def main() -> None:
    """Print one table a file."""
    print("# Written by `make manifest`.")
    for name, command in entries():
        data = (HERE / name).read_bytes()
        print(f'\n["{name}"]')
        print(f"size = {len(data)}")
        print(f'sha256 = "{hashlib.sha256(data).hexdigest()}"')
        print(f'command = "{command}"')


if __name__ == "__main__":
    main()
