"""Training builds of programs that are compiled in other ways than plainly."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.loops import BUILD, MakeLoop, is_recorded
from builders.outputs import held

from lbr2pgo.pgo.training import Training
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.program.elf.image import Image

THROWS = """
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

struct Guard {
  int &left;
  ~Guard() { ++left; }
};

static int parse(int number) {
  if (number % 7 == 3)
    throw std::runtime_error("three");
  if (number % 11 == 4)
    throw number;
  return number / 2;
}

int main(int argc, char **argv) {
  long sum = 0;
  int left = 0;
  for (int i = 0; i < atoi(argv[1]); ++i) {
    try {
      Guard guard{left};
      sum += parse(i);
    } catch (const std::exception &error) {
      sum += error.what()[0];
    } catch (int number) {
      sum -= number;
    }
  }
  std::printf("%ld %d\\n", sum, left);
}
"""
ROUNDS = 400
UNWINDS = "clang++-22 $CXXFLAGS app.cc -fuse-ld=lld $LDFLAGS -o app"
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "flags", ["-flto", "-flto=thin", "-fsanitize=undefined", "-fsanitize=undefined -flto=thin"]
)
def test_a_training_build_is_compiled_as_the_shipped_one(
    loop: MakeLoop, said: list[str], flags: str
) -> None:
    build = BUILD.replace("interp.c", f"{flags} interp.c")
    plain, rebuilt = loop(
        build=build, probes=True, training_flags=("-O1",), train=Training(("./app 1",), 1009, True)
    ).run()
    assert not any("Note: it" in line for line in said)
    assert is_recorded(Image.open("work/app.training"))
    assert rebuilt.counted.output == plain.counted.output
    assert rebuilt.counted.totals.taken < plain.counted.totals.taken


@pytest.mark.parametrize("flags", ["", "-flto=thin", "-fsanitize=undefined"])
def test_what_exceptions_lead_to_is_counted(loop: MakeLoop, flags: str) -> None:
    Path("app.cc").write_text(THROWS.lstrip())
    training = Training((f"./app {ROUNDS}",), None, True, exact=True)
    build = UNWINDS.replace("app.cc", f"{flags} app.cc")
    plain, rebuilt = loop(build=build, training_flags=("-O1", "-fno-inline"), train=training).run()
    assert is_recorded(Image.open("work/app.training"))
    assert rebuilt.counted.output == plain.counted.output
    profile = held(Path("work/app.prof"))
    assert isinstance(profile, SampleProfile)
    thrown = [n for n in range(ROUNDS) if n % 7 == 3]
    others = [n for n in range(ROUNDS) if n % 7 != 3 and n % 11 == 4]
    handlers = {8: len(thrown), 10: len(others)}
    body = profile.functions["main"].body
    counted = {line: max(n for (at, _), n in body.items() if at == line) for line in handlers}
    assert counted == handlers
