"""Random C programs: recursion, tail calls, calls through pointers and of libraries, inlining."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

FLAGS = ("-O2", "-g", "-fdebug-info-for-profiling", "-fno-omit-frame-pointer",
         "-mno-omit-leaf-frame-pointer", "-fno-pie", "-no-pie", "-w")  # fmt: skip
KINDS = ("static inline", "static inline", "static", "__attribute__((noinline))", "")


class CProgram:
    """One program; equal seeds make equal ones."""

    def __init__(self, seed: int, functions: int = 12) -> None:
        self._random = random.Random(seed)
        self._count = functions

    def text(self) -> str:
        """The source."""
        head = ["#include <stdlib.h>", "extern int printf(const char *, ...);",
                "static volatile int sink;"]  # fmt: skip
        heads = [self._head(number) for number in range(self._count)]
        table = ", ".join(f"f{number}" for number in range(self._count))
        pointers = f"int (*const table[])(int, int) = {{{table}}};"
        bodies = [
            "\n".join([head, "{", *self._body(number, 2, "  "), *self._end(number), "}"])
            for number, head in enumerate(heads)
        ]
        main = ["int main(int a, char **v) {", "  int b = 2 * a;", *self._body(0, 2, "  "),
                "  return sink;", "}"]  # fmt: skip
        declared = (f"{head};" for head in heads)
        return "\n".join([*head, *declared, pointers, *bodies, *main, ""])

    def _head(self, number: int) -> str:
        return f"{self._random.choice(KINDS)} int f{number}(int a, int b)".strip()

    def _call(self) -> str:
        choose, values = self._random, ("a", "b", "a + b", "a - 1", "b / 3", "7")
        arguments = f"({choose.choice(values)}, {choose.choice(values)})"
        if choose.random() < 0.15:
            return f"table[(unsigned)a % {self._count}]{arguments}"
        if choose.random() < 0.1:
            return "rand()"
        return f"f{choose.randrange(self._count)}{arguments}"

    def _body(self, number: int, depth: int, indent: str) -> Iterator[str]:
        for _ in range(self._random.randint(1, 3)):
            yield from self._statement(number, depth, indent)

    def _statement(self, number: int, depth: int, indent: str) -> Iterator[str]:
        kind = self._random.choice(("call", "call", "set", "if", "for", "both"))
        if kind == "both":
            yield f"{indent}sink += {self._call()} ^ {self._call()};"
        elif kind == "call" or (kind != "set" and not depth):
            yield f"{indent}a ^= {self._call()};"
        elif kind == "set":
            yield f"{indent}sink = a * {self._random.randint(2, 9)} + b;"
        else:
            head = "if (a > b)" if kind == "if" else "for (int i = a; i < b; i++)"
            yield f"{indent}{head} {{"
            yield from self._body(number, depth - 1, indent + "  ")
            yield f"{indent}}}"

    def _end(self, number: int) -> Iterator[str]:
        choice = self._random.random()
        if choice < 0.3:
            yield f"  if (a & 1) return f{self._random.randrange(self._count)}(b, a);"
        yield f"  return {self._call()};" if choice > 0.6 else "  return a + b;"

    def compile(self, target: Path, *flags: str, compiler: str = "clang-22") -> Path:
        """Compile and link."""
        source = target.with_suffix(".c")
        source.write_text(self.text())
        command = [compiler, *FLAGS, *flags, source.name, "-o", target.name]
        done = subprocess.run(command, capture_output=True, text=True, cwd=target.parent)
        assert done.returncode == 0, done.stderr
        return target
