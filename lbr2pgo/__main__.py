"""`python -m lbr2pgo` is the command `lbr2pgo`."""

import sys
from typing import NoReturn


def command() -> NoReturn:
    """The command's process, from beginning to end."""
    try:
        from lbr2pgo.cli import main  # Ctrl-C may come meanwhile
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(main())


if __name__ == "__main__":
    command()
