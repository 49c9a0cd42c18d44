"""Where llvm-profgen and perf2bolt count otherwise than we do, rule by rule.

`--compat` asks for a tool's rules; code asks by their names (`Compat.follows`), and `make tables`
writes them into docs/differences.md.
"""

from __future__ import annotations

from typing import Literal

from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError

Tool = Literal["llvm-profgen", "perf2bolt"]
LLVM_PROFGEN: Tool = "llvm-profgen"
PERF2BOLT: Tool = "perf2bolt"
TOOLS = (LLVM_PROFGEN, PERF2BOLT)


@dataclass(frozen=True, slots=True)
class Rule:
    """What a tool does and we don't."""

    theirs: str
    ours: str
    """With the reason."""
    shown_by: str
    """Tests, or the recordings of one."""
    tool: Tool = LLVM_PROFGEN
    """Whose numbers follow the rule when asked for."""
    is_of_both: bool = False
    """The other tool has it, too."""


@dataclass(frozen=True, slots=True)
class Compat:
    """Which tools' numbers are asked for even where we know better."""

    tools: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if unknown := self.tools.difference(TOOLS):
            known = ", ".join(TOOLS)
            raise InputError(f"no tool to count as: {min(unknown)}", cure=f"Known: {known}.")

    def follows(self, rule: Rule) -> bool:
        """Whether to count by a tool's rule."""
        return rule.tool in self.tools or (rule.is_of_both and bool(self.tools))


OURS = Compat()


ALL_ENTRIES_COUNT = Rule(
    "take interrupts, faults, aborted transactions and branches on a wrong path for branches of "
    "the program, recordings with a branch filter for whole ones, and the neighbours of an entry "
    "that is empty or outside the image for neighbours of each other",
    "these are no branches, and break the chain",
    "`tests/counting/test_count.py`; `tests/profiles/llvm/test_correlate.py`, `flags_and_copies`, "
    "`nothing_is_inferred`",
    is_of_both=True,
)
CODE_BY_SYMBOLS = Rule(
    "takes a `lock` prefix for an instruction of its own, and so keeps what ran behind a jump over "
    "one, as older C libraries have it; code outside all symbols is outside the image",
    "it is part of the instruction: what ran behind such a jump is lost, and counted",
    "`tests/profiles/llvm/test_correlate.py`, `over_a_lock_prefix`",
)
LEAF_DROPS_SAMPLE = Rule(
    "drops a whole sample whose call stack ends in a function's first two instructions, at a "
    "return or just before one, even if the call stack is not used",
    "keep it: the branch stack beside it is whole",
    "`tests/profiles/llvm/test_correlate.py`, `noinline-cs-noprobe`",
)
CALLS_END_RUNS = Rule(
    "rejects a fall-through over a call",
    "keep it, counted as suspicious; `--strict` rejects it",
    "`tests/profiles/llvm/test_correlate.py`, `invalid-range`",
)
TRAPS_DONT_END_RUNS = Rule(
    "accepts a fall-through over a trap (`ud2`, `int3`), an indirect jump, or bytes that are no "
    "code",
    "reject it: nothing runs on behind a trap; over an indirect jump it is suspicious",
    "`tests/replay/test_replay.py`",
)
JUMPS_TO_NEXT_END_RUNS = Rule(
    "rejects a fall-through over a jump to the next instruction",
    "keep it: execution goes on there",
    "`tests/replay/test_replay.py`",
)
FUSED_STAY = Rule(
    "takes a branch that the recorder logged at the compare which it was fused with for one that "
    "starts there",
    "count it at the branch",
    "`tests/replay/test_fusion.py`",
)
ASTRAY_COUNT = Rule(
    "count a direct branch to another target than its own, and branches where none is",
    "no branch can have made it: it is lost, and written nowhere",
    "`tests/replay/test_astray.py`",
    is_of_both=True,
)
OUTSIDE_CALLS = Rule(
    "takes all that is outside the image for address 1, and gives calls from there to a function "
    "whose debug information the linker left at address 0 (`--icf`, `--gc-sections`)",
    "such calls are head samples of the callee only",
    "`tests/profiles/llvm/test_correlate.py`, `folded`",
)
LAST_NAMESAKES_PROBES = Rule(
    "takes the probes of all static functions of one name for the last one's",
    "each function has its own",
    "`tests/profiles/llvm/test_probe_profile.py`, `told_apart`",
)
PROBES_OF_RUN_FUNCTIONS = Rule(
    "counts probes of code that was inlined into an unknown function (a build without `-g1`, "
    "coroutines) only where their own function ran, too",
    "count them all",
    "`tests/profiles/llvm/test_probe_profile.py`, `forgot_into_what`",
)
CALLS_BY_PROBES_ALONE = Rule(
    "knows no targets and no contexts of calls by probes in programs for AArch64 and RISC-V, where "
    "clang writes none of calls",
    "the line table has the numbers of calls",
    "`tests/profiles/llvm/test_calls_by_lines.py`",
)
CALLERS_AS_RECORDED = Rule(
    "drops a sample whose call stack lacks the innermost caller, or that has none",
    "put the caller back from the branch stack, and count what has no callers without them (see "
    "[contexts](contexts.md#what-is-lost))",
    "`tests/recorders/test_lost_callers.py`, `tests/evidence/contexts/test_unwind.py`",
)
CALLERS_ALL_LOCATED = Rule(
    "drops what was called from a place without a source location",
    "count it in a context that begins behind that call",
    "`tests/profiles/llvm/contexts/test_line_contexts.py`",
)
CONTEXTS_BY_WHOLE_WORDS = Rule(
    "tells inlined functions apart by the place they are inlined at alone, and calls by "
    "whole discriminators here, by base discriminators there",
    "tell them apart by function and place, and by base discriminators everywhere",
    "`tests/profiles/llvm/contexts/test_line_contexts.py`",
)
SIZES_BY_DEBUG_NAMES = Rule(
    "deciding what to inline by probes, knows no size of functions whose line tables (`-g1`) have "
    "a short name in place of the linker's, and takes that of any other function",
    "give a function that stands by itself the size of its code",
    "`tests/recorders/test_call_chains.py`",
)
INLINED_ONCE = Rule(
    "nests what is to be inlined into its caller alone, so it looks cold where the compiler can't "
    "inline it, or by an option adds all that is nested; loses samples of recursive functions",
    "add what was not inlined in the recorded program ([contexts](contexts.md#what-is-inlined)), "
    "lose none",
    "`tests/profiles/llvm/contexts/test_nesting.py`, `test_preinliner.py`, `test__preinliner.py`",
)
CALLERS_WITH_PROBES = Rule(
    "by probes, has nothing inlined into code that lost its own",
    "do",
    "`tests/profiles/llvm/contexts/test_probe_contexts.py`",
)
THIN_COPIES = Rule(
    "has calls inlined however few their samples, many their blocks and levels of recursion, or "
    "alike their copies",
    "leave those below 0.2 %, of hundreds of blocks, of a third level or small and alike to the "
    "compiler",
    "`tests/profiles/llvm/contexts/test_nesting.py`, `test__preinliner.py`, `test_alike.py`",
)
NON_SIMPLE_LEFT_OUT = Rule(
    "leaves out edges behind recursive calls, and whole functions that it can't rewrite",
    "write them (see [fdata](fdata.md))",
    "`tests/profiles/bolt/fdata/test_derive_fdata.py`",
    PERF2BOLT,
)
FULL_STACKS_DOUBTED = Rule(
    "of a program that BOLT made (`-enable-bat`) leaves out the two newest entries of every stack, "
    "from the first of 32 on",
    "keep them: a copy of the newest is recognised",
    "`tests/profiles/bolt/test_moved.py`",
    PERF2BOLT,
)

FOLLOWED = (
    LEAF_DROPS_SAMPLE,
    CALLS_END_RUNS,
    TRAPS_DONT_END_RUNS,
    JUMPS_TO_NEXT_END_RUNS,
    FUSED_STAY,
    ASTRAY_COUNT,
    OUTSIDE_CALLS,
    LAST_NAMESAKES_PROBES,
    PROBES_OF_RUN_FUNCTIONS,
    CALLS_BY_PROBES_ALONE,
    CALLERS_AS_RECORDED,
    CALLERS_ALL_LOCATED,
    CONTEXTS_BY_WHOLE_WORDS,
    SIZES_BY_DEBUG_NAMES,
    INLINED_ONCE,
    CALLERS_WITH_PROBES,
    THIN_COPIES,
    CODE_BY_SYMBOLS,
    ALL_ENTRIES_COUNT,
    NON_SIMPLE_LEFT_OUT,
    FULL_STACKS_DOUBTED,
)
"""What `--compat` follows."""

NOT_FOLLOWED = (
    Rule(
        "says of a context that was inlined in some code and called in other what it saw first",
        "say that it was inlined: what it sees first is a matter of its hash tables",
        "`tests/profiles/llvm/contexts/test_line_contexts.py`",
    ),
    Rule(
        "reads perf.data through `perf script`, which in some versions (6.1) gives the frames of "
        "call stacks as offsets in their file: of a program that can be loaded anywhere every "
        "frame is external to it then, and no context is left",
        "frames are addresses; from text with addresses llvm-profgen makes our contexts",
        "`tests/recorders/test_call_chains.py`, `test_perf_shows_the_chains_that_are_read`",
    ),
    Rule(
        "count the recorder's copy of the newest entry as a branch of its own",
        "drop the copy (see [counting](counting.md))",
        "`tests/counting/test__traces.py`",
        is_of_both=True,
    ),
    Rule(
        "maps one image at one address for the whole file",
        "follow every process and its mappings through time",
        "`tests/counting/test_count.py`",
    ),
)
"""What we never do."""
