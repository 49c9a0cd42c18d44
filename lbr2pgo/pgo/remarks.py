"""What clang said while it optimised: the remarks of `-fsave-optimization-record`, in YAML.

LLVM: docs/Remarks.rst. A file is a stream of documents, one a remark, whose tag says what became of
the attempt. Clang writes one beside each object file (`a.opt.yaml` of `a.o`).
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from lbr2pgo.analyses.changes import base_name
from lbr2pgo.analyses.costs import Pair
from lbr2pgo.support.errors import InputError

_PATTERNS = ("*.opt.yaml", "*.opt.ld.yaml*")
_OUTCOMES = {"!Passed": "inlined", "!Missed": "not inlined:"}
_END = " at callsite "
"""What follows is a place, and not a reason."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads a remark as a mapping, with its tag beside the rest; all scalars are text."""


def _remark(loader: Any, node: Any) -> dict[str, Any]:
    return {**loader.construct_mapping(node, deep=True), "Outcome": node.tag}


_Loader.add_constructor(None, _remark)


def beside(build: Path) -> Path:
    """The folder in which the remarks of a build are kept."""
    return build.with_name(f"{build.name}.remarks")


def keep_remarks(build: Path, places: Iterable[Path], since: float, apart: Path) -> int:
    """Move remarks that were written since a time to beside a build; gives how many files.

    Looks in folders and what is below them, but not in the one that is kept `apart`.
    """
    folder = beside(build)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    found = {path.resolve() for place in places for path in _below(place)}
    fresh = [path for path in sorted(found) if not path.is_relative_to(apart.resolve())]
    fresh = [path for path in fresh if path.stat().st_mtime >= since]
    for number, path in enumerate(fresh):  # files of several folders may be called alike
        shutil.move(path, folder / f"{number}.{path.name}")
    return len(fresh)


def _below(place: Path) -> Iterator[Path]:
    for pattern in _PATTERNS:
        yield from place.rglob(pattern)


def inlining(build: Path) -> Mapping[Pair, str]:
    """What was said of inlining, by function and caller, most often; empty where nothing was kept.

    Where some calls of a pair were inlined and others were not, the former are told. Raises
    InputError for a file that is no remarks.
    """
    said: dict[Pair, Counter[tuple[bool, str]]] = {}
    for path in sorted(beside(build).glob("*.yaml*")):
        for pair, is_done, text in _of_file(path):
            said.setdefault(pair, Counter())[is_done, text] += 1
    return {pair: _chosen(counts) for pair, counts in said.items()}


def _chosen(counts: Counter[tuple[bool, str]]) -> str:
    (_, text), _ = max(counts.items(), key=lambda item: (item[0][0], item[1], item[0][1]))
    return text


def _of_file(path: Path) -> Iterator[tuple[Pair, bool, str]]:
    try:
        with path.open("rb") as stream:
            for remark in yaml.load_all(stream, Loader=_Loader):
                yield from _said(remark)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"is no file of remarks: {' '.join(str(error).split())}",
            where=str(path),
            cure="Have it written anew: lbr2pgo pgo --remarks.",
        ) from None


def _said(remark: Mapping[str, Any]) -> Iterator[tuple[Pair, bool, str]]:
    outcome = _OUTCOMES.get(remark["Outcome"])
    arguments = [item for each in remark.get("Args", ()) for item in each.items()]
    names = [name for name, _ in arguments]
    if outcome is None or "Callee" not in names or "Caller" not in names:
        return
    values = dict(arguments)
    reason = "".join(str(v) for name, v in arguments[names.index("Caller") + 1 :]
                     if name != "DebugLoc").partition(_END)[0].strip("' ")  # fmt: skip
    reason = reason.removeprefix("because ").removeprefix("with ")
    pair = base_name(values["Callee"]), base_name(values["Caller"])
    yield pair, outcome == _OUTCOMES["!Passed"], f"{outcome} {reason}"
