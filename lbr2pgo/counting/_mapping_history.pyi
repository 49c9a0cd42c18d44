from lbr2pgo.support.arrays import I32, U8

def replay(
    steps: U8, own: I32, parents: I32, latest: I32, before: I32, last: I32, length: I32
) -> None:
    """Take each step (n,) of a process, a row of `latest` (p,), all -1 at first.

    A mapping gets the number of its step. Fills, each (n,): the process's mapping before the step,
    its last one after it, and how many mappings that one ends. Raises IndexError for a process that
    isn't there.
    """
