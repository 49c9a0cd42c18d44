"""`lbr2pgo pgo --explain`: why one build is better than another."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lbr2pgo.pgo.explain import Explained


def run_explain(args: Namespace, binary: Path) -> int:
    """Run the command with both builds, and print what makes the difference."""
    from lbr2pgo.pgo.explain import explain_builds, find_build
    from lbr2pgo.pgo.standard_input import kept_input
    from lbr2pgo.pgo.training import Training
    from lbr2pgo.reports.readable import readable_table
    from lbr2pgo.reports.terminal import make_console, show_table
    from lbr2pgo.reports.values import told
    from lbr2pgo.support.errors import InputError
    from lbr2pgo.support.printable import printable

    commands = [args.measure] if args.measure else args.train
    if not commands:
        raise InputError("there is no command to run", cure="Give --measure 'CMD'.")
    work = args.work or Path(f"{binary.name}.lbr2pgo")
    a, b = (find_build(name, work, binary) for name in args.explain)
    command = Training(tuple(commands), None, emulate=True).whole_command
    source = kept_input(work / f"{binary.name}.stdin")
    explained = explain_builds(a, b, binary, command, source)
    console = make_console()
    for sentence in _headline(explained):
        console.print(printable(sentence))
    for table in explained.tables:
        show_table(told(readable_table(table)), console)
    return 0


def _headline(explained: Explained) -> list[str]:
    a, b = explained.a, explained.b
    parts = []
    for name, title in (("instructions", "instructions"), ("taken", "taken branches")):
        before, after = (getattr(each.totals, name) for each in (a, b))
        change = after / max(before, 1) - 1
        parts.append(f"{abs(change):.1%} {'fewer' if change < 0 else 'more'} {title}")
    notes = [f"note: {note}" for note in explained.notes]
    return [f"A is {a.name}", f"B is {b.name}", f"B needs {' and '.join(parts)} than A.", *notes]
