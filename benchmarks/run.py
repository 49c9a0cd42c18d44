"""Measure lbr2pgo and its peers on the same files, in turn; `make bench` calls this."""

from __future__ import annotations

import argparse
import compileall
import json
import platform
import sys
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import measure
import table
from inputs import cases
from tools import Case, commands

HERE = Path(__file__).parent
DOCUMENT = HERE.parent / "docs" / "performance.md"


def compare(case: Case, times: int) -> dict[str, Any]:
    """Medians of what each tool costs; the first, warming round does not count."""
    with tempfile.TemporaryDirectory() as folder:
        tools = commands(case, Path(folder))
        costs: dict[str, list[measure.Cost]] = {name: [] for name in tools}
        for turn in range(times + 1):
            for name, command in tools.items():
                cost = measure.run(command)
                if turn:
                    costs[name].append(cost)
    found = {name: asdict(measure.medians(each)) for name, each in costs.items()}
    return {"case": case.name, "bytes": case.profile.stat().st_size, "tools": found}


def main() -> None:
    """Run all cases; print and store the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5, help="runs of each tool that count")
    parser.add_argument("--only", default="", help="only inputs whose name contains this")
    parser.add_argument("--inputs", type=Path, default=HERE.parent / "build" / "bench")
    args = parser.parse_args()
    compileall.compile_dir(HERE.parent / "lbr2pgo", quiet=1)  # as installing it does
    results = []
    for case in cases(args.inputs):
        if args.only in case.name:
            print(f"measuring: {case.name}", file=sys.stderr)
            results.append(compare(case, args.times))
    print(*table.rows(results), sep="\n")
    _store(results)


def _store(results: table.Results) -> None:
    """In the place of those of the same inputs: each row is of one run, not all of the same."""
    now, folder = datetime.now(UTC), HERE / "results"
    folder.mkdir(exist_ok=True)
    path = folder / f"{now:%Y-%m-%d}.json"
    earlier = [json.loads(each.read_text())["results"] for each in sorted(folder.iterdir())[-1:]]
    known = {each["case"]: each for each in (*chain(*earlier), *results)}
    facts = {"date": path.stem, "machine": platform.machine(), "results": [*known.values()]}
    path.write_text(json.dumps(facts, indent=1) + "\n")
    table.put_into(DOCUMENT, [*known.values()])


if __name__ == "__main__":
    main()
