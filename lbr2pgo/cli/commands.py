"""The commands, and what each is for.

A command's own module is loaded only where its words are to be read.
"""

COMMANDS = {
    "convert": "write what compilers and optimizers read",
    "merge": "add up counts, recordings or profiles",
    "fleet": "count and add up the recordings of many machines",
    "record": "record a command's branches",
    "doctor": "tell what this machine can record, and why not",
    "dump": "show each stage, to see why a number is what it is",
    "report": "show hot branches, mispredictions, latencies, outcomes, targets and more",
    "view": "open a recording's report in the browser",
    "accuracy": "compare a profile with the exact counts of the same run",
    "check": "tell whether a profile is good enough to ship",
    "measure": "compare what programs cost: instructions, branches, time",
    "pgo": "build, train, rebuild with the profile, and measure what it gained",
    "bolt": "optimise a linked binary with llvm-bolt, or copy it while there is no profile",
    "share": "print where the files for CMake, Make, Meson or Bazel are",
    "msr": "decode dumps of branch registers; plan and read Intel's",
    "completion": "print what makes a shell complete commands and options",
    "help": "show the help of a command",
}
