"""Names mean one thing: file names of modules, and public classes."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "lbr2pgo"

SAME_IDEA = {"format", "reader", "registry", "base", "written"}
"""What many a subject has one of: its format, what reads it, its list, what its modules share."""

SAME_MATTER = (
    {"sources", "model", "profiles"},  # a format that is read, held and written
    {"evidence", "analyses"},  # what samples tell, and the table of it
)
"""Rooms in which modules of one name are of one matter."""
FRONT = {"cli", "dumping"}
"""Rooms that show what others do, under the same name."""


def python_files() -> Iterator[Path]:
    return (path.relative_to(PACKAGE) for path in sorted(PACKAGE.rglob("*.py")))


def test_a_file_name_is_unique_or_plainly_the_same_idea() -> None:
    named = defaultdict(list)
    for path in python_files():
        if path.stem != "__init__" and path.stem not in SAME_IDEA:
            named[path.stem].append(path)
    unclear = [
        (str(one), str(other))
        for paths in named.values()
        for one, other in combinations(paths, 2)
        if not is_same_idea(one.parts[0], other.parts[0])
    ]
    assert unclear == []


def is_same_idea(one: str, other: str) -> bool:
    return bool({one, other} & FRONT) or any({one, other} <= rooms for rooms in SAME_MATTER)


def test_a_public_class_name_means_one_thing() -> None:
    places = defaultdict(list)
    for path in python_files():
        for node in ast.parse((PACKAGE / path).read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
