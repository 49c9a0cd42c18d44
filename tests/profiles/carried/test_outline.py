from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from builders.fixtures import ROOT, Tool

from lbr2pgo.profiles.carried.fates import source_name
from lbr2pgo.profiles.carried.outline import Definition, blanked, definitions
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.elf.image import Image

C = r"""
#define OPEN(x) int x(void) {
static const int table[] = { 1, 2 }; /* int not_this(int) { */
char *quoted = "int nor_this(void) {";
struct point { int x, y; };
struct point *
make(int x,
     int y)
{
  if (x) { return 0; }
  return 0; // }
}
LIB_API int (api) (void) { return '{'; }
int old_style(a, b)
  int a; char *b;
{
  return a;
}
#ifdef WIDE
int width(long n) {
#else
int width(int n) {
#endif
  while (n) {
    n--;
  }
  return n;
}
int after(void) __attribute__((noinline));
int after(void) { return 1; }
"""
CXX = r"""
namespace a { namespace {
template <class T> class Box : public Base<T> {
 public:
  explicit Box(int x) : x_{x}, y_(1) {}
  ~Box() { drop(); }
  bool operator<(const Box& other) const noexcept { return x_ < other.x_; }
  T operator()(int i) const { return i; }
  int x_ = 0, y_;
};
}
auto size(const char* text) -> decltype(sizeof(int)) { return 0; }
}
extern "C" {
void exported(int) { auto f = [](int x) { return x; }; f(1); }
}
template <> int a::pick<int>(int x) { return R"({{)" [x]; }
enum class Kind { ONE, TWO };
int last() { return 1'000; }
"""
RUST = """
impl<T> Stack<T> {
    #[inline]
    pub fn push<'a, F: Fn(T) -> T>(&'a mut self, x: T) -> Option<T> where T: Copy {
        match x { _ => None }
    }
}
mod inner { fn run() { let c = 'x'; if c == '{' { } } }
"""


def spans(text: str, file: str = "x.c") -> list[tuple[str, str, int, int]]:
    return [(each.scope, each.name, each.start, each.end) for each in definitions(text, file)]


def test_functions_of_c() -> None:
    assert spans(C) == [
        ("", "make", 7, 12), ("", "api", 13, 13), ("", "old_style", 14, 18),
        ("", "width", 20, 21), ("", "width", 22, 28), ("", "after", 30, 30),
    ]  # fmt: skip


def test_functions_of_cxx() -> None:
    assert spans(CXX) == [
        ("a::Box", "Box", 5, 5), ("a::Box", "~Box", 6, 6), ("a::Box", "operator<", 7, 7),
        ("a::Box", "operator()", 8, 8), ("a", "size", 12, 12), ("", "exported", 15, 15),
        ("a", "pick", 17, 17), ("", "last", 19, 19),
    ]  # fmt: skip


def test_functions_of_rust() -> None:
    assert spans(RUST) == [("Stack", "push", 4, 6), ("inner", "run", 8, 8)]


def test_lines_are_code_alone() -> None:
    (found,) = definitions("int  f(void) { // one\n\n   return  'a';  }\n", "a.c")
    assert found == Definition("f", "", "a.c", 1, 3, ("int f(void) {", "", 'return " "; }'))


def test_text_that_ends_within_a_function() -> None:
    assert spans("int f(void) {\n  g();\n") == [("", "f", 1, 1)]
    assert spans("int f(void) { } }\nint g(void) { }\n") == [("", "f", 1, 1), ("", "g", 2, 2)]


def test_blanked_text_keeps_lines_and_columns() -> None:
    text = 'a /* b\nc */ d "e" \\\n#define f \\\n g\n#if 1\nh'
    code = blanked(text)
    assert [len(line) for line in code.split("\n")] == [len(line) for line in text.split("\n")]
    assert code.split() == ["a", "d", '"', '"', "\\", "\x01", "h"]


@pytest.mark.parametrize(
    ("source", "compiler"), [("interp.c", "clang-22"), ("shapes.cpp", "clang++-22")]
)
def test_functions_start_where_the_compiler_says(
    tmp_path: Path, tool: Tool, source: str, compiler: str
) -> None:
    path = ROOT / "testbins/src" / source
    program = tmp_path / "program"
    subprocess.run([tool(compiler), "-g", "-w", path, "-o", program], check=True)
    debug = DebugInfo.open(Image.open(program))
    addresses = debug.functions().range_start
    found, place_of = debug.places(addresses)
    lines, scopes = debug.lines(addresses), found.scopes
    started = {
        (source_name(found.names[scopes.function[row]]), int(scopes.start_line[row]))
        for row, file in zip(found.scope[place_of].tolist(), lines.file.tolist(), strict=True)
        if lines.files[file].endswith(source)
    }
    ours = {(each.name, each.start) for each in definitions(path.read_text(), source)}
    text = path.read_text().split("\n")
    written = {
        (name, line)
        for name, line in started
        if f"{name}(" in text[line - 1] and "= default" not in text[line - 1]
    }
    assert len(written) > 3  # of others the compiler wrote them, or they have no name
    assert written <= ours


@pytest.mark.parametrize(
    "text",
    ["a<" * 20000 + "{}", "a::" * 20000 + "{}", "a() : b" * 9000 + "{}", "operator " * 9000 + "{}",
     "int f(a) " + "int a;   " * 9000 + "# ;{ }", "{" * 50000 + "}" * 50000,
     "f(" * 30000 + ")" * 30000 + "{}",
     "::a::operator" * 5000 + "{}", "#if 1\n{\n#else\n{\n#endif\n" * 5000],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_odd_text_takes_no_longer_than_other(text: str) -> None:
    start = time.process_time()
    list(definitions(text, "x.c"))
    assert time.process_time() - start < 2
