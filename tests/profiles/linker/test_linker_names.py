"""Names that a list for a compiler or a linker can hold."""

from __future__ import annotations

from builders.symbols import Row, symbol_table

from lbr2pgo.profiles.linker.linker_names import names_at


def test_functions_have_the_names_that_no_other_has_and_a_list_can_hold() -> None:
    rows = (("f", 0x10), ("alias", 0x10), ("static", 0x20), ("static", 0x30), ("a b", 0x40))
    symbols = symbol_table(*(Row(name, start) for name, start in rows))
    found, lost = names_at([0x10, 0x20, 0x40, 0x50], symbols)
    assert [set(names) for names in found] == [{"f", "alias"}, set(), set(), set()]
    assert lost == {"two_of_one_name": 1, "odd_name": 1, "no_symbol": 1}
