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
_INPUT = {
    "convert": f"{_PLAIN}: lbr2pgo convert perf.data",
    "report": f"{_PLAIN}: lbr2pgo report perf.data",
    "view": f"{_PLAIN}: lbr2pgo view perf.data",
    "check": f"{_PLAIN}: lbr2pgo check perf.data --binary ./app",
    "merge": f"{_PLAIN}: lbr2pgo merge -o ALL perf.data",
}
_PROFILES = {"convert": f"{_PLAIN}: lbr2pgo convert perf.data --binary ./app --llvm OUT"}
_FUNCTION = {"report": "--function F"}
_VERBOSE = dict.fromkeys(("record", "report", "convert", "check", "merge", "view"), "--verbose")
_QUIET = dict.fromkeys(_VERBOSE, "--quiet")
_DENSITY = {"convert": "lbr2pgo check tells the density (--min-density refuses by it)"}
_CODE = {"convert": "lbr2pgo dump disasm"}
_LINKED = {"convert": "no option is needed: addresses are those that the file links"}
_COLD = {"convert": "cold contexts are kept; --contexts nested or off makes a profile smaller"}
OPTIONS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "-o": (_PERF, _OUTPUT),
    "--output": (_PROFGEN, _OUTPUT),
    "-i": (_PERF, _INPUT),
    "--input": (_PERF, _INPUT),
    "-v": (_PERF, _VERBOSE),
    "-q": (_PERF, _QUIET),
    "--stdio": (_PERF, {"report": "that is what it does; lbr2pgo view opens a page"}),
    "--stdio2": (_PERF, {"report": "that is what it does; lbr2pgo view opens a page"}),
    "--tui": (_PERF, {"report": "lbr2pgo view opens a page"}),
    "-g": (_PERF, {"record": "--call-graph", "report": "--only call-stacks"}),
    "-s": (_PERF, {"report": "--sort KEYS, or --function F for one symbol"}),
    "-S": (_PERF, _FUNCTION),
    "--symbols": (_PERF, _FUNCTION),
    "--symbol-filter": (_PERF, _FUNCTION),
    "-d": (_PERF, {"report": "--binary ELF --no-libraries"}),
    "--dsos": (_PERF, {"report": "--binary ELF --no-libraries"}),
    "-F": (_PERF, {"report": "--only chooses tables; --format csv has all columns"}),
    "--fields": (_PERF, {"report": "--only chooses tables; --format csv has all columns"}),
    "-n": (_PERF, {"report": "counts stand beside shares (--full, or --format csv)"}),
    "-k": (_PERF, {"report": "--binary vmlinux"}),
    "--vmlinux": (_PERF, {"report": "--binary vmlinux"}),
    "-D": (_PERF, {"record": "--delay SECONDS", "report": "lbr2pgo dump stacks"}),
    "--header": (_PERF, {"report": "--format json has it under details"}),
    "--percent-limit": (_PERF, {"report": "--top N"}),
    "--no-children": (_PERF, {"report": "no function has its callees' counts"}),
    "--children": (_PERF, {"report": "--only call-stacks has those of callees, too"}),
    "--total-cycles": (_PERF, {"report": "--only latency-rates"}),
    "--branch-history": (_PERF, {"report": "--only hyperblocks"}),
    "-b": (_PERF, {"record": "branches are what it records"}),
    "--branch-any": (_PERF, {"record": "branches are what it records"}),
    "--branch-filter": (_PERF, {"record": "-j NAMES"}),
    "--branch-stack": (_PERF, {"report": "branches are what it shows: --only hot-branches"}),
    "-e": (_PERF, {"record": "the event is the one that lbr2pgo doctor names"}),
    "--event": (_PERF, {"record": "the event is the one that lbr2pgo doctor names"}),
    "-C": (_PERF, {"record": "-a, and --cpu where it is read"}),
    "-t": (_PERF, {"record": "-p PID, and --tid where it is read"}),
    "--call-graph": (_PERF, {"report": "--only call-stacks"}),
    "--perfdata": (_PROFGEN, _PROFILES),
    "--perfscript": (_PROFGEN, _PROFILES),
    "--unsymbolized-profile": (_PROFGEN, _PROFILES),
    "--use-dwarf-correlation": (_PROFGEN, {"convert": "--probes off"}),
    "--format": (_PROFGEN, {"convert": "--llvm-format text, or extbinary"}),
    "--skip-symbolization": (_PROFGEN, {"convert": "--unsymbolized OUT"}),
    "--ignore-stack-samples": (_PROFGEN, {"convert": "--contexts off"}),
    "--csprof-max-context-depth": (_PROFGEN, {"convert": "--max-context-depth N"}),
    "--csprof-max-cold-context-depth": (_PROFGEN, _COLD),
    "--csprof-merge-cold-context": (_PROFGEN, _COLD),
    "--csprof-max-unsymbolized-context-depth": (
        _PROFGEN, {"convert": "--unsymbolized-contexts keeps all of them"},
    ),
    "--trim-cold-profile": (_PROFGEN, _COLD),
    "--infer-missing-frames": (_PROFGEN, {"convert": "callers behind tail calls are looked for"}),
    "--debug-binary": (
        _PROFGEN, {"convert": "the debug file is found by build-id or debug link"},
    ),
    "--dwp": (_PROFGEN, {"convert": "a .dwp is found beside the program"}),
    "--kernel": (_PROFGEN, {"convert": "--binary vmlinux"}),
    "--llvm-sample-profile": (_PROFGEN, {"convert": "lbr2pgo check and merge read profiles"}),
    "--load-function-from-symbol": (_PROFGEN, {"convert": "symbols are always read"}),
    "--profile-density-cutoff-hot": (_PROFGEN, _DENSITY),
    "--profile-density-threshold": (_PROFGEN, _DENSITY),
    "--show-density": (_PROFGEN, _DENSITY),
    "--show-canonical-fname": (_PROFGEN, _CODE),
    "--show-disassembly-only": (_PROFGEN, _CODE),
    "--show-source-locations": (_PROFGEN, _CODE),
    "--disassemble-functions": (_PROFGEN, _CODE),
    "--show-pseudo-probe": (_PROFGEN, {"convert": "lbr2pgo dump probes"}),
    "--show-mmap-events": (_PROFGEN, {"convert": "lbr2pgo dump stacks"}),
    "--show-detailed-warning": (_PROFGEN, {"convert": "it says what became of every sample"}),
    "--use-offset": (_PROFGEN, _LINKED),
    "--use-first-loadable-segment-as-base": (_PROFGEN, _LINKED),
    "--update-total-samples": (_PROFGEN, {"convert": "totals are as without it"}),
}  # fmt: skip
"""Options that no command of ours has by this name, by whose they are, with what each command has
in their place."""
CALL_GRAPHS = frozenset({"fp", "dwarf", "lbr"})
"""Kinds of call chains of perf's, whose --call-graph takes one."""
NO_KIND = "--call-graph takes no kind here: there is one for each recorder"
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
