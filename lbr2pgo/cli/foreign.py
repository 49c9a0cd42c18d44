"""Words of perf and llvm-profgen that people try here, and what they are called."""

from __future__ import annotations

from collections.abc import Mapping

_PLAIN = "files stand without an option"
VERBS = {
    "annotate": "lbr2pgo report PROFILE --function F [--source]",
    "script": "lbr2pgo dump stacks PROFILE",
    "list": "lbr2pgo doctor",
    "stat": "lbr2pgo measure ./app",
    "top": "lbr2pgo record -p PID --duration 10, then lbr2pgo report",
    "evlist": "lbr2pgo dump stacks PROFILE",
    "buildid-list": "lbr2pgo convert PROFILE --all-images",
}
"""Commands of perf, and ours that do their work."""
ELSEWHERE = {
    "inject": "makes branch stacks of traces (--itrace, of Intel PT or Arm ETM): let it, and give "
    "what it writes to lbr2pgo convert or report",
    **dict.fromkeys(("mem", "c2c"), "is about memory accesses, another subject than branches"),
    **dict.fromkeys(
        ("sched", "lock", "kmem", "timechart"), "is about the kernel's work, and not about branches"
    ),
    "trace": "shows system calls, and no branches",
}
"""Commands of perf whose work is not ours, and why."""
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
_FUNCTION = {"report": "--function F"}
_VERBOSE = dict.fromkeys(("record", "report", "convert", "check", "merge", "view"), "--verbose")
_QUIET = dict.fromkeys(_VERBOSE, "--quiet")
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "-o": _OUTPUT,
    "--output": _OUTPUT,
    "-i": _INPUT,
    "--input": _INPUT,
    "-v": _VERBOSE,
    "-q": _QUIET,
    "--stdio": {"report": "that is what it does; lbr2pgo view opens a page"},
    "--stdio2": {"report": "that is what it does; lbr2pgo view opens a page"},
    "--tui": {"report": "lbr2pgo view opens a page"},
    "-g": {"record": "--call-graph", "report": "--only call-stacks"},
    "-s": {"report": "--sort KEYS, or --function F for one symbol"},
    "-S": _FUNCTION,
    "--symbols": _FUNCTION,
    "--symbol-filter": _FUNCTION,
    "-d": {"report": "--binary ELF --no-libraries"},
    "--dsos": {"report": "--binary ELF --no-libraries"},
    "-F": {"report": "--only chooses tables; --format csv has all columns"},
    "--fields": {"report": "--only chooses tables; --format csv has all columns"},
    "-n": {"report": "counts stand beside shares (--full, or --format csv)"},
    "-k": {"report": "--binary vmlinux"},
    "--vmlinux": {"report": "--binary vmlinux"},
    "-D": {"record": "--delay SECONDS", "report": "lbr2pgo dump stacks"},
    "--header": {"report": "--format json has it under details"},
    "--percent-limit": {"report": "--top N"},
    "--no-children": {"report": "no function has its callees' counts"},
    "--children": {"report": "--only call-stacks has those of callees, too"},
    "--total-cycles": {"report": "--only latency-rates"},
    "--branch-history": {"report": "--only hyperblocks"},
    "-b": {"record": "branches are what it records"},
    "--branch-any": {"record": "branches are what it records"},
    "--branch-filter": {"record": "-j NAMES"},
    "--branch-stack": {"report": "branches are what it shows: --only hot-branches"},
    "-e": {"record": "the event is the one that lbr2pgo doctor names"},
    "--event": {"record": "the event is the one that lbr2pgo doctor names"},
    "-C": {"record": "-a, and --cpu where it is read"},
    "-t": {"record": "-p PID, and --tid where it is read"},
    "--call-graph": {"report": "--only call-stacks"},
}
"""Options of perf that no command of ours has by this name, with what each command has in their
place."""
PROFGEN_OPTIONS = (
    ("--binary", "`--binary`; may be left out where the recording names the program"),
    (
        "--perfdata --perfscript --unsymbolized-profile",
        f"{_PLAIN}, one or several, and perf is not needed: "
        "`lbr2pgo convert perf.data --binary app --llvm OUT`",
    ),
    (
        "--output",
        "each output has its option: `--llvm OUT`, `--fdata OUT` (`--help-all` lists all); `-` is "
        "standard output",
    ),
    (
        "--format",
        "`--llvm-format text`, or `extbinary`; `binary` is obsolete, for `gcc` there is `--afdo`",
    ),
    (
        "--debug-binary",
        "it is found by itself: `.gnu_debuglink`, build-id directories, debuginfod's cache, `.dwo` "
        "and `.dwp`",
    ),
    ("--dwp", "it is found beside the program"),
    ("--pid", "`--pid`, several separated by commas"),
    (
        "--skip-symbolization",
        "`--unsymbolized OUT`, beside the other outputs; with contexts by "
        "`--unsymbolized-contexts lines` or, in programs with probes, `addresses`",
    ),
    ("--ignore-stack-samples", "`--contexts off`"),
    (
        "--csprof-max-context-depth --csprof-max-unsymbolized-context-depth",
        "`--max-context-depth N`, which holds for every output",
    ),
    (
        "--csprof-max-cold-context-depth --csprof-merge-cold-context --trim-cold-profile",
        "`--contexts nested`, the default, keeps contexts where inlining is worth it; with `full` "
        "nothing is trimmed",
    ),
    (
        "--infer-missing-frames --max-search-depth",
        "always: frames that tail calls dropped are put back where only one path leads there",
    ),
    ("--use-dwarf-correlation", "`--probes off`"),
    (
        "--load-function-from-symbol",
        "always: functions are those of symbols, DWARF and unwind tables together",
    ),
    (
        "--show-canonical-fname",
        "`report` and `dump` show names of C++; profiles hold linkage names",
    ),
    ("--show-density", "`convert` says it, and `lbr2pgo check` judges it"),
    ("--profile-density-threshold", "`lbr2pgo check --min-density N`"),
    ("--profile-density-cutoff-hot", "nothing: 99 %, the default, is what `lbr2pgo check` takes"),
    ("--show-detailed-warning", "always: the loss waterfall says what became of every sample"),
    (
        "--show-disassembly-only --disassemble-functions --show-source-locations",
        "`lbr2pgo dump disasm --binary app --function NAME`",
    ),
    ("--show-pseudo-probe", "`lbr2pgo dump probes --binary app`"),
    ("--show-mmap-events", "`lbr2pgo dump stacks perf.data`"),
    ("--kernel", "`--binary vmlinux`, which is told by its symbols"),
    (
        "--llvm-sample-profile",
        "`lbr2pgo check PROFILE --binary app`, `lbr2pgo dump profile PROFILE`",
    ),
    ("--update-total-samples", "nothing: totals are the sum of a function's lines already"),
    (
        "--use-offset --use-first-loadable-segment-as-base",
        "nothing: addresses are those that the ELF file links, and inputs are recognised",
    ),
    ("--data-access-perftrace", "`--vtables`: also by probes and contexts"),
    ("--color", "`--color always`, `never` or `auto`; NO_COLOR"),
    ("--help --help-list --version", "`--help`, `lbr2pgo help COMMAND`, `--version`"),
)
"""Options of llvm-profgen, and what `convert` has in their place; also for docs/coming-from.md."""
_OF_PROFGEN = {word: here for words, here in PROFGEN_OPTIONS for word in words.split()}
CALL_GRAPHS = frozenset({"fp", "dwarf", "lbr"})
"""Kinds of call chains of perf's, whose --call-graph takes one."""
NO_KIND = "--call-graph takes no kind here: there is one for each recorder"
_CHOICES = {"html": "a page is written by --html OUT", "text": "that is --format table"}


def verb(word: str) -> str | None:
    """What is said of a command of perf's."""
    if word in ELSEWHERE:
        return f"{word} is perf's alone: it {ELSEWHERE[word]}"
    return f"{word} is perf's; here it is `{VERBS[word]}`" if word in VERBS else None


def option(command: str, word: str) -> str | None:
    """What is said of an option of theirs, behind one of our commands."""
    if command == "convert" and word in _OF_PROFGEN:
        return f"{word} is llvm-profgen's; here {_OF_PROFGEN[word].replace('`', '')}"
    here = OPTIONS.get(word, {})
    return f"{word} is perf's; here {here[command]}" if command in here else None


def choice(word: str) -> str | None:
    """What is said of a value of theirs."""
    return _CHOICES.get(word)
