"""A large manifest for ninja: ``python manifest.py LIBRARIES SOURCES > build.ninja``.

So many libraries of so many sources each, a program of each, and a file that all of it makes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

_RULES = """\
cflags = -O2 -g -Iinclude
rule cc
  command = cc $cflags $defines -MD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
  description = CC $out
rule generate
  command = generate --from $in $out
  restat = 1
rule ar
  command = rm -f $out && ar crs $out $in
rule link
  command = c++ $ldflags -o $out $in $libs
"""


def manifest(libraries: int, sources: int) -> Iterator[str]:
    """Its lines."""
    yield _RULES
    for library in range(libraries):
        name, objects = f"lib{library * 37 % 101}_{library}", []
        for source in range(sources):
            stem = f"$root/{name}/part{source}"
            objects.append(f"obj/{name}/part{source}.o")
            yield f"build {objects[-1]}: cc {stem}.c | {stem}.h || gen/{name}.stamp"
            yield f"  defines = -DNAME={name} -DPART={source * library % 17}"
            yield f"build {stem}.c {stem}.h: generate gen/{name}.in"
        yield f"build gen/{name}.stamp: ar $\n    gen/{name}.in\nbuild gen/{name}.in: phony"
        listed = " $\n    ".join(objects)
        yield f"build out/{name}.a: ar {listed}"
        before = f" out/lib{(library - 1) * 37 % 101}_{library - 1}.a" if library else ""
        yield f"build bin/{name}: link out/{name}.a{before}\n  libs = -lm -lpthread"
    yield f"build all: phony {' '.join(f'bin/lib{n * 37 % 101}_{n}' for n in range(libraries))}"
    yield "default all"


if __name__ == "__main__":
    print("root = src", *manifest(*map(int, sys.argv[1:])), sep="\n")
