"""What clones of paths add to Propeller's layout.

``python benchmarks/cloned_paths.py FOLDER SOURCE... [--flags=FLAGS] [--train=WORDS]
[--arguments=WORDS]``

Builds a program with a block map, records it with `--train`, lays it out with and without
`--propeller-clone-paths`, and counts both with `--arguments`, beside the build that was recorded.
It wants clang 22 and lld 22.
"""

from __future__ import annotations

import json

from startup import COMPILED, LBR2PGO, LINKED, compiler_of, ordered, program_parser, run

WAYS = {"laid out": (), "with clones": ("--propeller-clone-paths",)}


def main() -> None:
    """Print a row for each build, with ratios to the one before, at first the recorded one."""
    given = program_parser(__doc__).parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    build = (compiler_of(given.sources[0]), *COMPILED, *LINKED, *given.sources, *given.flags)
    plain, recording = given.folder / "plain", given.folder / "perf.data"
    run(*build, "-fbasic-block-address-map", "-o", plain)
    run(*LBR2PGO, "record", "--emulate", "-c", 997, "-o", recording, "--", plain, *given.train)
    builds = [plain]
    for number, asked in enumerate(WAYS.values()):
        program, clusters, order = (given.folder / f"{number}{end}" for end in ("", ".cc", ".ld"))
        to = ("--propeller-cc", clusters, "--propeller-ld", order, *asked)
        run(*LBR2PGO, "convert", recording, "--binary", plain, *to)
        run(*build, f"-fbasic-block-sections=list={clusters}", *ordered(order), "-o", program)
        builds.append(program)
    measure = (*LBR2PGO, "measure", "--runs", 0, "--format", "json")
    rows = json.loads(run(*measure, *builds, "--", *given.arguments))["programs"]
    for name, row, before in zip(WAYS, rows[1:], rows, strict=False):
        taken, text = row["counts"]["taken"], row["size"]["text"]
        ratios = taken / before["counts"]["taken"], text / before["size"]["text"]
        print(f"{name:12} {taken:13,} taken branches ({ratios[0]:.3f})  code {ratios[1]:.3f}")


if __name__ == "__main__":
    main()
