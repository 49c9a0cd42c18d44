"""`LineBranches`: branches that are known by source line and function, and not by address."""

from __future__ import annotations

from lbr2pgo.support.arrays import I64
from lbr2pgo.support.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class LineBranches:
    """Columns of equal length, in the input's order; an empty text is not known."""

    source_function: tuple[str, ...]
    target_function: tuple[str, ...]
    source_line: tuple[str, ...]
    """`file:line`"""
    target_line: tuple[str, ...]
    source_module: tuple[str, ...]
    target_module: tuple[str, ...]
    process: tuple[str, ...]
    samples: I64
    """How often each branch was seen."""
    mispredicted: I64 | None
    """How often it was mispredicted; None where the input is silent."""

    def __post_init__(self) -> None:
        lengths = {len(getattr(self, name)) for name in TEXT_COLUMNS} | {len(self.samples)}
        if self.mispredicted is not None:
            lengths.add(len(self.mispredicted))
        if len(lengths) > 1:
            raise ValueError(f"columns of different lengths: {sorted(lengths)}")

    def __len__(self) -> int:
        return len(self.samples)


TEXT_COLUMNS = (
    "source_function", "target_function", "source_line", "target_line", "source_module",
    "target_module", "process",
)  # fmt: skip
