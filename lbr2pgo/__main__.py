"""`python -m lbr2pgo` is the command `lbr2pgo`."""

import gc
import sys
from typing import NoReturn


def command() -> NoReturn:
    """The command's process, from beginning to end."""
    try:
        from lbr2pgo.cli import main  # Ctrl-C may come meanwhile
    except KeyboardInterrupt:
        sys.exit(130)
    code = main()
    # The process ends: to look for cycles among all that is left is a twentieth of a short run.
    gc.freeze()
    sys.exit(code)


if __name__ == "__main__":
    command()
