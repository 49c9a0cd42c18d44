"""Words of perf and llvm-profgen that people try here, and what they are called."""

from __future__ import annotations

from collections.abc import Mapping

_PERF, _PROFGEN = "perf's", "llvm-profgen's"
_PLAIN = "files stand without an option"
VERBS = {
    "annotate": "lbr2pgo report PROFILE --function F [--source]",
    "script": "lbr2pgo dump stacks PROFILE",
    "diff": "lbr2pgo report NEW --against OLD",
    "list": "lbr2pgo doctor",
    "stat": "lbr2pgo measure ./app",
    "top": "lbr2pgo record -p PID --duration 10, then lbr2pgo report",
    "evlist": "lbr2pgo dump stacks PROFILE",
    "buildid-list": "lbr2pgo convert PROFILE --all-images",
}
"""Commands of perf, and ours that do their work."""
_OUTPUT = {
    "convert": "each output has its option: --llvm OUT, --fdata OUT (--help-all lists all)",
    "report": "a page is --html OUT, all else goes to standard output: > OUT",
    "view": "lbr2pgo report --html OUT writes the page",
    "check": "what it says goes to standard output: > OUT",
}
_INPUT = {name: f"{_PLAIN}: lbr2pgo {name} perf.data" for name in ("convert", "report", "view")}
_PROFILES = {"convert": f"{_PLAIN}: lbr2pgo convert perf.data --binary ./app --llvm OUT"}
OPTIONS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "-o": (_PERF, _OUTPUT),
    "--output": (_PROFGEN, _OUTPUT),
    "-i": (_PERF, _INPUT),
    "--input": (_PERF, _INPUT),
    "--perfdata": (_PROFGEN, _PROFILES),
    "--perfscript": (_PROFGEN, _PROFILES),
    "--unsymbolized-profile": (_PROFGEN, _PROFILES),
    "--stdio": (_PERF, {"report": "that is what it does; lbr2pgo view opens a page"}),
    "--tui": (_PERF, {"report": "lbr2pgo view opens a page"}),
    "-g": (_PERF, {"record": "--call-graph", "report": "--only call-stacks"}),
    "-s": (_PERF, {"report": "--sort KEYS, or --function F for one symbol"}),
    "-S": (_PERF, {"report": "--function F"}),
    "--symbols": (_PERF, {"report": "--function F"}),
    "-b": (_PERF, {"record": "branches are what it records"}),
    "--branch-stack": (_PERF, {"report": "branches are what it shows: --only hot-branches"}),
    "--use-dwarf-correlation": (_PROFGEN, {"convert": "--probes off"}),
}
"""Options that no command of ours has by this name, by whose they are, with what each command has
in their place."""
_CHOICES = {"html": "a page is written by --html OUT", "text": "that is --format table"}


def verb(word: str) -> str | None:
    """What is said of a command of perf's."""
    return f"{word} is {_PERF}; here it is `{VERBS[word]}`" if word in VERBS else None


def option(command: str, word: str) -> str | None:
    """What is said of an option of theirs, behind one of our commands."""
    whose, here = OPTIONS.get(word, ("", {}))
    return f"{word} is {whose}; here {here[command]}" if command in here else None


def choice(word: str) -> str | None:
    """What is said of a value of theirs."""
    return _CHOICES.get(word)
