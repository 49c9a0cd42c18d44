"""Two documents in JSON, nested at random and like a table: ``python documents.py ONE TWO``."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path


def nested(depth: int) -> object:
    """Objects, arrays and values."""
    kind = random.random()
    if depth and kind < 0.25:
        return {f"key{random.randrange(50)}": nested(depth - 1) for _ in range(random.randrange(8))}
    if depth and kind < 0.5:
        return [nested(depth - 1) for _ in range(random.randrange(9))]
    number, whole = random.random() * 1e4, random.randrange(-99999, 99999)
    return random.choice([None, True, number, whole, "text é \n" * random.randrange(6)])


def record(i: int) -> object:
    """One of many that are alike."""
    return {"id": i, "name": "n" * (i % 19), "geo": [i / 7, i * 1.5, -i], "sub": nested(4)}


if __name__ == "__main__":
    one, two = map(Path, sys.argv[1:])
    random.seed(1)
    one.write_text(json.dumps([nested(9) for _ in range(300)], indent=1))
    random.seed(2)
    two.write_text(json.dumps({str(i): record(i) for i in range(1200)}))
