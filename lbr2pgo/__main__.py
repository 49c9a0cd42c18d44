"""`python -m lbr2pgo` is the command `lbr2pgo`."""

import sys
from typing import NoReturn

from lbr2pgo.cli import main


def command() -> NoReturn:
    """The command's process, from beginning to end."""
    sys.exit(main())


if __name__ == "__main__":
    command()
