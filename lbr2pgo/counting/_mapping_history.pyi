from lbr2pgo.support.arrays import I32, I64, U8, U64

def replay(
    steps: U8, own: I32, parents: I32, latest: I32, before: I32, last: I32, length: I32
) -> None:
    """Take each step (n,) of a process, a row of `latest` (p,), all -1 at first.

    A mapping gets the number of its step. Fills, each (n,): the process's mapping before the step,
    its last one after it, and how many mappings that one ends. Raises IndexError for a process that
    isn't there.
    """

def last_at(
    asked: I32, times: U64, pids: I64, owner: I32, since: U64, last: I32, found: I64
) -> None:
    """Find the last mapping (n,) that each process (n,) had at a time (n,), -1 if none.

    Of the processes (p,), ascending, each row (k,) is of the one at `owner`, ascending, and says
    since when it had which last mapping, in the order of time. Raises IndexError where columns are
    too short.
    """
