"""A function's result, worked out in another process while this one goes on."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """Calls a function at once, in a copy of this process; the result must be picklable.

    Where no copy can be made, or it ends without a result, the function is called here when the
    result is asked for: so it may be called twice, and what it raises is raised then.

    >>> Background(sum, [1, 2]).result()
    3
    """

    def __init__(self, function: Callable[..., T], *arguments: object) -> None:
        self._call: Callable[[], T] = lambda: function(*arguments)
        self._child: tuple[int, int] | None = _start(self._call) if _can_fork() else None

    def result(self) -> T:
        """Wait for the result."""
        if self._child is None:
            return self._call()
        process, pipe = self._child
        self._child = None
        with open(pipe, "rb") as answers:
            answer = answers.read()
        _, status = os.waitpid(process, 0)
        if status:
            return self._call()
        result: T = pickle.loads(answer)  # from our own copy
        return result


def _can_fork() -> bool:
    """Copying a process while it has threads may catch one of them with a lock."""
    has_processors = len(os.sched_getaffinity(0)) > 1
    return has_processors and hasattr(os, "fork") and threading.active_count() == 1


def _start(call: Callable[[], object]) -> tuple[int, int] | None:
    """Process id of the copy, and where its answer is read."""
    reader, writer = os.pipe()
    try:
        process = os.fork()
    except OSError:  # no more processes
        os.close(reader)
        os.close(writer)
        return None
    if process == 0:
        _answer(call, writer)
    os.close(writer)
    return process, reader


def _answer(call: Callable[[], object], writer: int) -> None:
    """Send the result and end, whatever happens: nothing of the parent's may go on here."""
    code = 1
    try:
        with open(writer, "wb") as stream:
            pickle.dump(call(), stream)
        code = 0
    finally:
        os._exit(code)
