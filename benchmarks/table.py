"""The results as a table, on the terminal and in docs/performance.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools import OURS

BEGIN, END = "<!-- figures: made by benchmarks/run.py -->", "<!-- end of figures -->"

Results = Sequence[Mapping[str, Any]]
"""One a case: its name, and under `tools` wall, cpu and peak of each tool."""


def faster(result: Mapping[str, Any]) -> float | None:
    """How many times faster than the fastest peer, by wall time; None without a peer."""
    tools = result["tools"]
    peers = [cost["wall"] for name, cost in tools.items() if not name.startswith(OURS)]
    return min(peers) / tools[OURS]["wall"] if peers else None


def rows(results: Results) -> list[str]:
    """A table in Markdown."""
    lines = [
        "| input | tool | wall, s | CPU, s | peak, MB | times faster |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for result in results:
        ratio, case = faster(result), result["case"]
        for name, cost in result["tools"].items():
            told = f"**{ratio:.1f}**" if name == OURS and ratio else ""
            lines.append(
                f"| {case} | {name} | {cost['wall']:.2f} | {cost['cpu']:.2f} "
                f"| {cost['peak']:.0f} | {told} |"
            )
            case = ""  # it is told once
    return lines


def put_into(document: Path, results: Results) -> None:
    """Replace the table in a document that has the marks for it."""
    before, _, rest = document.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "\n".join(rows(results))
    document.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")
