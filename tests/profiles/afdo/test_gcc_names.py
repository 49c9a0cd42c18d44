"""Names as GCC looks them up, and those that it gave to constructors itself."""

from __future__ import annotations

import re

import pytest
from builders.fixtures import Compiled, Run, Tool

from lbr2pgo.profiles.afdo.gcc_names import base_variant, gcc_name

SOURCE = """
#include <map>
#include <string>
#include <tuple>
template <class T> struct Box {
  T held;
  template <class U> Box(U &&given) : held(given) {}
  template <int N> struct C4Inner { C4Inner(T t, int (*)[N]) { if (t) throw t; } ~C4Inner() {} };
};
int main(int argc, char **argv) {
  std::map<std::string, std::tuple<long, Box<long>>> all;
  all.emplace(argv[0], std::make_tuple(3L, Box<long>(argc)));
  auto count = [&](auto x) { struct Local { long n; Local(long n) : n(n) {} } l(x); return l.n; };
  int row[5];
  Box<int>::C4Inner<5> inner(argc, &row);
  return all.size() + count(Box<Box<int>>(argc).held.held);
}
"""


@pytest.mark.parametrize(
    ("name", "wanted", "newer"),
    [
        ("f.constprop.0.isra.0", "f", "f"),
        ("f.part.0.cold", "f", "f"),
        ("f.lto_priv.12", "f", "f.lto_priv.12"),
        ("f._omp_fn.0", "f", "f._omp_fn.0"),
        ("f._omp_fn.1.cold", "f", "f._omp_fn.1"),
        ("inner.0", "inner", "inner.0"),
        ("parts.part_of.0", "parts", "parts.part_of.0"),
        ("_ZN1AC4Ev", "_ZN1AC2Ev", "_ZN1AC2Ev"),
        ("_ZN1AD4Ev", "_ZN1AD2Ev", "_ZN1AD2Ev"),
        ("_ZN1AC1Ev", "_ZN1AC1Ev", "_ZN1AC1Ev"),
        ("_Z2C4EPc", "_Z2C4EPc", "_Z2C4EPc"),
        ("_ZN²C4Ev", "_ZN²C2Ev", "_ZN²C2Ev"),
        ("_ZN" + "9" * 5000, "_ZN" + "9" * 5000, "_ZN" + "9" * 5000),
        ("_ZN2C43barEv", "_ZN2C43barEv", "_ZN2C43barEv"),
        ("_ZN1AILi5EEC4IiEET_", "_ZN1AILi5EEC2IiEET_", "_ZN1AILi5EEC2IiEET_"),
        ("_ZN3FooIZN1AC4EvEUlvE_E3barEv",) * 3,
        ("_ZN", "_ZN", "_ZN"),
        (".L1", "", ""),
    ],
)
def test_names_are_those_that_gcc_looks_up(name: str, wanted: str, newer: str) -> None:
    assert (gcc_name(name), gcc_name(name, 3)) == (wanted, newer)


def test_every_constructor_that_gcc_names_has_a_base_variant(
    compiled: Compiled, tool: Tool, run: Run
) -> None:
    """Only the variant changes, which the demangler does not show."""
    program = compiled("g++-12", SOURCE, "-O1", "-g", "-std=c++17")
    said = run(tool("llvm-dwarfdump-22"), "--debug-info", program).stdout
    every = set(re.findall(r'DW_AT_linkage_name\t\("(_ZN.*)"\)', said))
    names = sorted(n for n in every if re.search("[CD]4[EI]", n.replace("7C4Inner", "")))
    assert sum("C4I" in name for name in names) > 10
    variants = [base_variant(name) for name in names]
    assert all(
        sum(a != b for a, b in zip(*pair, strict=True)) == 1
        for pair in zip(names, variants, strict=True)
    )
    shown = (run(tool("c++filt"), input="\n".join(each)).stdout for each in (names, variants))
    assert len(set(shown)) == 1
