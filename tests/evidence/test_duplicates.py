from __future__ import annotations

from builders.sources import Sample
from builders.stack_tables import collected, samples_of, spaces

from lbr2pgo.evidence.duplicates import DuplicateCollector
from lbr2pgo.native.walk import StackKind

CALL = (0x1010, 0x3500)
"""Too far for a tight loop."""


def test_the_second_entry_that_repeats_the_newest_is_counted() -> None:
    found = collected(
        DuplicateCollector(spaces()),
        [Sample([CALL, CALL, CALL], weight=3), Sample([CALL]), Sample([])],
    )
    assert found is not None
    assert (found.from_.tolist(), found.to.tolist()) == ([0x1010], [0x3500])
    assert found.count.tolist() == [3]


def test_without_any_there_is_no_table() -> None:
    tight = (0x1020, 0x1010)
    assert collected(DuplicateCollector(spaces()), [Sample([tight] * 8)]) is None
    filtered = collected(
        DuplicateCollector(spaces()), [Sample([CALL, CALL])], StackKind.SELECTED
    )  # fmt: skip
    assert filtered is None


def test_collectors_of_other_samples_add_up() -> None:
    one, other = DuplicateCollector(spaces()), DuplicateCollector(spaces())
    other.add(samples_of([Sample([CALL, CALL], weight=4)]))
    one.merge(other)
    found = one.result()
    assert found is not None
    assert found.count.tolist() == [4]
