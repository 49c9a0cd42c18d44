"""`lbr2pgo completion`: what a shell needs to complete commands, options and their values."""

from __future__ import annotations

import argparse

from lbr2pgo.cli.commands import COMMANDS


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "completion",
        help=COMMANDS["completion"],
        description="Print what makes a shell complete the words of lbr2pgo, to be read when the "
        "shell starts. The words come from lbr2pgo itself.",
        examples=(
            'eval "$(lbr2pgo completion bash)"    # in ~/.bashrc',
            'eval "$(lbr2pgo completion zsh)"     # in ~/.zshrc, after compinit',
            "lbr2pgo completion fish | source    # in ~/.config/fish/config.fish",
        ),
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the shell's code."""
    from argcomplete.shell_integration import shellcode

    print(shellcode(["lbr2pgo"], shell=args.shell))
    return 0
