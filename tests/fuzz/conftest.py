"""Lets the modules of this folder find each other, as when `run.py` is run."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
