"""Completion of words in shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest

SETTINGS = {**os.environ, "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
ASK = """
eval "$(lbr2pgo completion bash)"
COMP_WORDS=({line}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); COMP_TYPE=9
COMP_LINE="{line}"; COMP_POINT=${{#COMP_LINE}}
_python_argcomplete lbr2pgo
echo "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("lbr2pgo con", ["convert"]),
        ("lbr2pgo convert --llv", ["--llvm", "--llvm-format"]),
        ("lbr2pgo convert --llvm-format ext", ["extbinary"]),
        ("lbr2pgo dump cf", ["cfg"]),
        ("lbr2pgo completion z", ["zsh"]),
    ],
)
def test_bash_completes_commands_options_and_values(
    tool: Callable[[str], str], line: str, words: list[str]
) -> None:
    script = ASK.format(line=line)
    done = subprocess.run(
        [tool("bash"), "-c", script], env=SETTINGS, capture_output=True, text=True
    )
    assert sorted(done.stdout.split()) == words, done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_reads_its_script(command, shell: str) -> None:
    script = command("completion", shell).out
    assert "lbr2pgo" in script
    if shutil.which(shell):
        done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
