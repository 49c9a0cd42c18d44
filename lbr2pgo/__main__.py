"""`python -m lbr2pgo` is the command `lbr2pgo`."""

from __future__ import annotations

import gc
import sys

TYPE_CHECKING = False  # see `lbr2pgo`

if TYPE_CHECKING:
    from typing import NoReturn


def command() -> NoReturn:
    """The command's process, from beginning to end."""
    try:
        from lbr2pgo.cli import main  # Ctrl-C may come meanwhile
    except KeyboardInterrupt:
        sys.exit(130)
    try:
        sys.exit(main())
    finally:
        # Before it ends, Python looks for cycles in all that was loaded and made, more than once;
        # what is frozen is left out. It was an eighth of the CPU of a short conversion.
        gc.freeze()


if __name__ == "__main__":
    command()
