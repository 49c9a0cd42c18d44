"""The commands, what each is for, and which of its options most people need.

A command's own module is loaded only where its words are to be read.
"""

_STEPS = (
    {
        "record": "record a command's branches",
        "report": "show hot branches, mispredictions, latencies, outcomes, targets and more",
        "view": "open a recording's report in the browser",
    },
    {
        "convert": "write what compilers and optimizers read",
        "check": "tell whether a profile is good enough to ship",
        "pgo": "build, train, rebuild with the profile, and measure what it gained",
        "bolt": "optimise a linked binary with llvm-bolt, or copy it while there is no profile",
    },
    {
        "diff": "tell what changed between two profiles",
        "settle": "lay a new profile onto an old one, as far as chance is the difference",
        "carry": "carry a profile over changes of the source",
    },
    {
        "merge": "add up counts, recordings or profiles",
        "fleet": "count and add up the recordings of many machines",
    },
    {
        "doctor": "tell what this machine can record, and why not",
        "dump": "show each stage, to see why a number is what it is",
        "measure": "compare what programs cost: instructions, branches, time",
        "accuracy": "compare a profile with the exact counts of the same run",
        "share": "print where the files for CMake, Make, Meson, Bazel or git are",
        "msr": "decode dumps of branch registers; plan and read Intel's",
        "completion": "print what makes a shell complete commands and options",
        "help": "show the help of a command",
    },
)
COMMANDS = {name: about for step in _STEPS for name, about in step.items()}
"""In the order of the work."""
FIRST = frozenset(next(iter(step)) for step in _STEPS[1:])
"""Commands with which another step of the work begins."""

COMMON = {
    "record": ("--output", "--pid", "--duration", "--period", "--call-graph", "--filter",
               "--depth", "--exact", "--emulate", "--open"),
    "report": ("--binary", "--only", "--function", "--source", "--full", "--top", "--sort",
               "--format", "--against", "--html"),
    "view": ("--binary", "--serve", "--sysroot", "--no-libraries", "--source-dir",
             "--changed-source", "--terminal", "--event", "--pid", "--no-demangle"),
    "convert": ("--binary", "--all-images", "--llvm", "--fdata", "--afdo", "--propeller-cc",
                "--counts", "--all", "--no-lbr", "--pid"),
    "check": ("--binary", "--against", "--new-build", "--format", "--min-density",
              "--min-coverage", "--min-overlap", "--max-stale", "--max-missing", "--max-bias"),
    "pgo": ("--build", "--binary", "--cargo", "--train", "--measure", "--compiler", "--probes",
            "--search", "--bolt", "--work"),
    "merge": ("--output", "--weight", "--binary", "--event", "--pid", "--tid", "--comm", "--cpu",
              "--time", "--phase"),
    "fleet": ("--output", "--store", "--binary", "--sysroot", "--llvm", "--fdata", "--workers",
              "--host", "--half-life", "--report"),
}  # fmt: skip
"""Ten options of each command that has many: what --help shows; --help-all shows all."""
