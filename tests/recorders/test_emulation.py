from __future__ import annotations

from lbr2pgo.model.branch_stacks import BRANCH_TYPES
from lbr2pgo.recorders.emulation import kinds_kept


def test_kinds_kept_by_filters() -> None:
    def names(*filters: str) -> set[str]:
        kept = kinds_kept(filters)
        return {name for i, name in enumerate(BRANCH_TYPES) if kept >> i & 1}

    assert names() == names("u") == names("any", "cond") == names("no_tx") == set(BRANCH_TYPES)
    assert names("ind_jmp", "u", "k") == {"IND"}
    assert names("cond", "in_tx") == names("abort_tx") == set()
    assert names("cond", "in_tx", "no_tx") == {"COND"}
