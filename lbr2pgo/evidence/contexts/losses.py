"""What is lost where samples are unwound: steps of the waterfall.

Call stacks that are cut still tell the innermost callers, and samples without one still count, so
what is lost here is knowledge of callers, and hardly a sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lbr2pgo.model.waterfall import Reason, Step

if TYPE_CHECKING:
    from lbr2pgo.support.arrays import U64

MOST_FRAMES = 1 << 14
"""Of deeper call stacks the innermost frames count."""

_OTHER_BINARY = "check that the binary is the one that was recorded"

STEPS = (
    Step(
        "samples_unwound",
        "unwound",
        "samples",
        "samples_mapped",
        {
            "outside_image": Reason(
                "whose branches are all outside the image",
                "nothing: libraries and the kernel; convert them with their own --binary",
            ),
            "no_call_stack": Reason(
                "without a call stack (--compat llvm-profgen)",
                "leave out --compat: they count without callers",
            ),
        },
    ),
    Step(
        "call_stacks_whole",
        "with a whole call stack",
        "samples",
        "samples_unwound",
        {
            "no_call_stack": Reason(
                "without a call stack (they count, without callers)",
                "record call stacks: perf record -b --call-graph fp",
            ),
            "no_call": Reason(
                "whose call stack is cut where no call stands before a return address",
                "build with -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer",
            ),
            "too_deep": Reason(
                f"whose call stack has more than {MOST_FRAMES:,} frames (the innermost count)",
                "nothing: contexts show recursion once",
            ),
            "no_frame": Reason(
                "that lack the innermost caller, since the function's frame was not made yet or "
                "gone, and neither branches nor code show the call (they count, without callers)",
                "build with -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer; in prologues "
                "and epilogues nothing helps",
            ),
        },
    ),
    Step(
        "call_stacks_mended",
        "call stacks that lacked callers, which the branch stack or the code shows",
        "samples",
        None,
    ),
    Step("context_pairs", "pairs of neighbouring branches", "fall-throughs", None),
    Step(
        "context_runs",
        "of which it is known what ran between them",
        "fall-throughs",
        "context_pairs",
        {
            "left_image": Reason(
                "that left the image and came back", "nothing: a library was called, mostly"
            ),
            "not_recorded": Reason(
                "next to an entry that did not happen", "nothing: callers are known on both sides"
            ),
            "broken": Reason(
                "that can't have run so; what is before them has no callers", _OTHER_BINARY
            ),
        },
    ),
)

NO_CALLERS = {
    "behind_broken": Reason("before a pair that can't have run so", _OTHER_BINARY),
}
"""Why what ran has no callers, though it counts."""


def tallies(found: U64) -> Mapping[str, int]:
    """What the unwinder tallied, by steps and reasons."""
    from lbr2pgo.evidence.contexts import _unwinder as u

    count = found.tolist()
    unwound = count[u.UNWOUND]
    return {
        "samples_unwound": unwound,
        "samples_unwound/outside_image": count[u.NO_BRANCH],
        "samples_unwound/no_call_stack": count[u.DROPPED],
        "call_stacks_whole": count[u.WHOLE],
        "call_stacks_whole/no_call_stack": count[u.NO_CHAIN],
        "call_stacks_whole/no_call": count[u.NO_CALL],
        "call_stacks_whole/too_deep": count[u.TOO_DEEP],
        "call_stacks_whole/no_frame": count[u.NO_FRAME],
        "call_stacks_mended": count[u.MENDED],
        "context_pairs": sum(count[u.RUNS :]),
        "context_runs": count[u.RUNS] + count[u.BEHIND_BROKEN],
        "context_runs/left_image": count[u.PAIRED_OUTSIDE],
        "context_runs/not_recorded": count[u.UNSEEN],
        "context_runs/broken": count[u.BROKEN],
        "context_callers/behind_broken": count[u.BEHIND_BROKEN],
    }
