"""Functions of one name, through clang and lld."""

from __future__ import annotations

from pathlib import Path

from builders.fixtures import Run, Tool, lbr2pgo

FLAGS = ("-O2", "-g1", "-ffunction-sections", "-fuse-ld=lld", "-Wl,--build-id")


TWINS = {
    "a.c": "int twice(int);\nstatic __attribute__((noinline)) int step(int n) {\n"
    "  if (n == -12345) { volatile int cold = n; return cold; }\n  return n + 1; }\n"
    "int main(void) { int n = 0; for (int i = 0; i < 99999; i++) n = step(n) + twice(i) % 2;\n"
    "  return n & 1; }",
    "b.c": "static __attribute__((noinline)) int step(int n) {\n"
    "  return n % 3 ? n * 2 : n % 5 ? n * 3 : n; }\nint twice(int n) { return step(step(n)); }",
}


def test_two_functions_of_one_name_are_told_apart_by_their_files(
    tool: Tool, run: Run, tmp_path: Path
) -> None:
    for name, text in TWINS.items():
        (tmp_path / name).write_text(text)
    program, recording, files = tmp_path / "app", tmp_path / "data", ("./a.c", "b.c")
    run(tool("clang-22"), *FLAGS, "-fbasic-block-address-map", *files, "-o", program, cwd=tmp_path)
    run(*lbr2pgo("record", "--emulate", "-c", 997, "-o", recording, "--", program), check=False)
    cc, ld = tmp_path / "cc", tmp_path / "ld"
    outputs = ("--propeller-cc", cc, "--propeller-ld", ld)
    run(*lbr2pgo("convert", recording, "--binary", program, *outputs))
    text = cc.read_text()
    assert "m a.c\nf step\n# 3 blocks\nc 0 2\n" in text
    assert "m b.c\nf step\n# 3 blocks\nc " in text
    use = (f"-fbasic-block-sections=list={cc}", f"-Wl,--symbol-ordering-file={ld}")
    laid = tmp_path / "laid"
    run(tool("clang-22"), *FLAGS, *use, "-Werror", *files, "-o", laid, cwd=tmp_path)
    said = run(tool("llvm-nm-22"), "-n", laid).stdout.splitlines()
    assert len([line for line in said if line.endswith(" step")]) == 2
    assert len([line for line in said if line.endswith(" step.cold")]) == 1  # a.c's
    plain, moved = (run(each, check=False).returncode for each in (program, laid))
    assert plain == moved
