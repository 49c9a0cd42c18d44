from __future__ import annotations

from collections.abc import Callable

from lbr2pgo.profiles.propeller.same_blocks import compare_blocks
from lbr2pgo.program.program import Program

SOURCE = """
__attribute__((noinline)) int odd(int n) { return n % 3 ? n % 5 : n % 7 ? 1 : 2; }
int main(int n, char **v) { int s = 0; while (n < 99) s += odd(n++); return s & 1; }
"""
FLAGS = ("-fbasic-block-address-map", "-fuse-ld=lld")


def test_functions_whose_blocks_have_other_numbers_are_named(compiled: Callable[..., str]) -> None:
    first, same, other = (
        Program.open(compiled("clang-22", source, "-O1", *FLAGS))
        for source in (SOURCE, SOURCE.replace("n % 5", "n % 9"), SOURCE.replace("n % 7 ? 1 :", ""))
    )
    assert compare_blocks(first, same).differing == ()
    found = compare_blocks(first, other)
    assert (found.functions, found.differing) == (2, ("odd",))
