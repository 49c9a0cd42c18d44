"""`python -m lbr2pgo` is the command `lbr2pgo`."""

from typing import NoReturn

from lbr2pgo.cli import main
from lbr2pgo.cli.own_process import leave


def command() -> NoReturn:
    """The command's process, from beginning to end."""
    leave(main())


if __name__ == "__main__":
    command()
