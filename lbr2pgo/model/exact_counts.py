"""The exact counts of a run, in a small file: every taken branch, every conditional not taken.

An exact file is a NumPy `.npz` with these arrays, all of them present (no pickles):

``format``
    The text ``lbr2pgo-exact-1``.
``images``, ``build_ids``
    (k,) text: path and GNU build-id (lower-case hex, empty if unknown) of each image. Addresses in
    an image that has a build-id, or whose ELF file could be read, are image addresses: as the file
    links them. ``//anon`` (code that the program made itself) and ``[unknown]`` hold run-time
    addresses.
``from_image``, ``from``, ``to_image``, ``to``
    (n,) int32, uint64, int32, uint64: a branch instruction and where execution went on, as index
    of an image and address in it. For a conditional that was not taken that is the instruction
    behind it.
``taken``
    (n,) bool: whether the branch was taken.
``kind``
    (n,) uint8: index into `stacks.BRANCH_TYPES`.
``count``, ``mispredicted``
    (n,) uint64: how often, and how often the simulated predictor was wrong.
``totals``
    (4,) uint64: instructions, taken branches, conditionals not taken, simulated mispredictions, of
    all processes and threads. A repeated string instruction is one instruction.
``uncounted``
    () uint64: branches that are in the totals and not in the rows; 0 unless disk or memory ran out.

Rows are unique by (from_image, from, to_image, to, taken) and sorted by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt

from lbr2pgo.support.arrays import I32, U64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.npz import Arrays, read_arrays
from lbr2pgo.support.output import write_atomically
from lbr2pgo.support.sums import sums_of_groups

FORMAT = "lbr2pgo-exact-1"
_COLUMNS = {
    "from_image": np.int32, "from": np.uint64, "to_image": np.int32, "to": np.uint64,
    "taken": np.bool_, "kind": np.uint8, "count": np.uint64, "mispredicted": np.uint64,
}  # fmt: skip
_KEYS = ("from_image", "from", "to_image", "to", "taken")
ANONYMOUS, UNKNOWN = "//anon", "[unknown]"


@dataclass(frozen=True, slots=True)
class Totals:
    """What a run did as a whole."""

    instructions: int = 0
    taken: int = 0
    """Taken branches."""
    not_taken: int = 0
    """Conditional branches that were not taken."""
    mispredicted: int = 0
    """Branches that the simulated predictor got wrong."""


@dataclass(frozen=True, slots=True)
class ExactCounts:
    """An exact file in memory; see the module's docstring for the columns."""

    images: tuple[str, ...]
    build_ids: tuple[str | None, ...]
    from_image: I32
    from_: U64
    to_image: I32
    to: U64
    taken: npt.NDArray[np.bool_]
    kind: npt.NDArray[np.uint8]
    count: U64
    mispredicted: U64
    totals: Totals
    uncounted: int = 0

    def __len__(self) -> int:
        return len(self.count)

    @classmethod
    def from_rows(
        cls,
        rows: Arrays,
        images: Sequence[str],
        build_ids: Sequence[str | None],
        totals: Totals,
        uncounted: int = 0,
    ) -> Self:
        """Sort rows in any order, and sum those with equal keys."""
        columns: Arrays = {name: rows[name].astype(kind) for name, kind in _COLUMNS.items()}
        order = np.lexsort([columns[name] for name in reversed(_KEYS)])
        columns = {name: column[order] for name, column in columns.items()}
        firsts = np.flatnonzero(_starts_of_groups([columns[name] for name in _KEYS]))
        merged = {name: column[firsts] for name, column in columns.items()}
        if len(firsts):
            for name in ("count", "mispredicted"):
                merged[name] = sums_of_groups(columns[name], firsts)
        return cls(
            images=tuple(images),
            build_ids=tuple(build_ids),
            from_=merged.pop("from"),
            totals=totals,
            uncounted=uncounted,
            **merged,
        )

    def of_image(self, index: int) -> npt.NDArray[np.bool_]:
        """(n,): the rows whose branch lies in an image."""
        rows: npt.NDArray[np.bool_] = self.from_image == index
        return rows

    def find_image(self, build_id: str | None, path: str) -> int | None:
        """Index of an image, by build-id first, then by path, then by name."""
        if build_id is not None and build_id in self.build_ids:
            return self.build_ids.index(build_id)
        if path in self.images:
            return self.images.index(path)
        names = [Path(image).name for image in self.images]
        return names.index(Path(path).name) if Path(path).name in names else None

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all; OutputError where that is impossible."""
        arrays = {
            "format": np.array(FORMAT),
            "images": np.array(self.images, np.str_),
            "build_ids": np.array([b or "" for b in self.build_ids], np.str_),
            "totals": np.array(
                [
                    self.totals.instructions, self.totals.taken,
                    self.totals.not_taken, self.totals.mispredicted,
                ],
                np.uint64,
            ),
            "uncounted": np.array(self.uncounted, np.uint64),
        }  # fmt: skip
        for name in _COLUMNS:
            arrays[name] = getattr(self, "from_" if name == "from" else name)

        def write(file: BinaryIO) -> None:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

        write_atomically(path, write)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read an exact file; InputError if it is none, or is damaged."""
        arrays = _load_arrays(path)
        lengths = {len(arrays[name]) for name in _COLUMNS}
        images = len(arrays["images"])
        indices = np.concatenate([arrays["from_image"], arrays["to_image"]])
        if (
            len(lengths) != 1
            or arrays["totals"].shape != (4,)
            or len(arrays["build_ids"]) != images
            or np.any((indices < 0) | (indices >= images))
        ):
            raise _damaged(path, "its arrays do not fit together")
        return cls.from_rows(
            arrays,
            [str(image) for image in arrays["images"]],
            [str(b) or None for b in arrays["build_ids"]],
            Totals(*(int(total) for total in arrays["totals"])),
            int(arrays["uncounted"]),
        )


def _starts_of_groups(keys: list[npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
    """Where a row differs from the one before; the rows are sorted."""
    starts = np.zeros(len(keys[0]), np.bool_)
    starts[:1] = True
    for key in keys:
        starts[1:] |= key[1:] != key[:-1]
    return starts


def _load_arrays(path: Path) -> Arrays:
    try:
        arrays = read_arrays(path)
    except OSError as error:
        raise _damaged(path, error.strerror or str(error)) from error
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if str(arrays.get("format")) != FORMAT:
        raise _damaged(path, f"it is not of the format {FORMAT}")
    wanted = {"images": "U", "build_ids": "U", "totals": "u", "uncounted": "u"}
    wanted |= {name: np.dtype(kind).kind for name, kind in _COLUMNS.items()}
    for name, kind in wanted.items():
        if name not in arrays or arrays[name].dtype.kind != kind:
            raise _damaged(path, f"the array {name!r} is missing or of another type")
        if arrays[name].ndim != (name != "uncounted"):
            raise _damaged(path, f"the array {name!r} has a wrong shape")
    return arrays


def _damaged(path: Path, why: str) -> InputError:
    return InputError(
        f"no file of exact counts: {why}",
        where=str(path),
        cure="Make one with lbr2pgo record --exact FILE.",
    )
