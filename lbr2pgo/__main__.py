"""`python -m lbr2pgo` is the command `lbr2pgo`."""

import sys

from lbr2pgo.cli import main

if __name__ == "__main__":
    sys.exit(main())
