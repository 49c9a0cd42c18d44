from lbr2pgo.native.row_ids import RowIds, RowSums
from lbr2pgo.support.arrays import U8, U64

def infer_calls(
    contexts: RowIds, has_samples: U8, head: U64, total: U64, lines: RowSums, calls: RowSums
) -> None:
    """Let callers know of calls that no branch made, since what was called is inlined.

    A function without head samples tells its caller how often it was entered: as often as its
    first line ran, and once at least. Innermost functions come first, since this adds to their
    callers' lines (LLVM: tools/llvm-profgen/ProfileGenerator.cpp, populateInferredFunctionSamples).

    contexts: rows (context of the caller, location of the call, function), callers before those
    whom they called; row 0 is no context. has_samples, head, total (n,): of each context; what has
    samples, and totals, grow. lines: (context, location, 0), calls: (context, location, callee).
    """
