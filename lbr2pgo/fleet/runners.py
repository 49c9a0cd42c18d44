"""Where tasks run: in threads here, in processes here, or on a cluster that runs already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar

from lbr2pgo.support.errors import InputError
from lbr2pgo.support.extras import extra
from lbr2pgo.support.threads import in_order, threads

T = TypeVar("T")
R = TypeVar("R")

_PATIENCE = 10
"""Seconds to wait for a scheduler."""
_WINDOW = 8
"""Tasks that wait, for each that runs: a million files are no million tasks."""


class Runner(Protocol):
    """Runs tasks that don't depend on each other."""

    def each(self, task: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """What a task makes of each item, in any order."""

    @property
    def link(self) -> str | None:
        """Where people can watch: Dask's dashboard, whose page says if it lacks Bokeh."""


class Threads:
    """In this process."""

    link = None

    def each(self, task: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """See `Runner`."""
        yield from in_order(((item,) for item in items), [task] * threads())


class Dask:
    """On the workers of a scheduler, which gives the tasks of a lost worker to another."""

    def __init__(self, client: Any) -> None:
        self._client = client

    @property
    def link(self) -> str | None:
        """See `Runner`."""
        return str(self._client.dashboard_link or "") or None

    def each(self, task: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """See `Runner`."""
        distributed = extra("distributed", "fleet", "running on Dask")
        waiting = iter(items)
        cores = sum(self._client.nthreads().values()) or 1

        def submit(most: int) -> list[Any]:
            chosen = islice(waiting, most)
            return [self._client.submit(task, item, pure=False) for item in chosen]

        running = distributed.as_completed(submit(_WINDOW * cores))
        try:
            for future in running:
                yield future.result()
                future.release()
                running.update(submit(1))
        except (OSError, TimeoutError, distributed.CancelledError, distributed.KilledWorker) as e:
            raise InputError(
                f"the scheduler or its workers went away: {e or type(e).__name__}",
                cure="Run it again: what was counted is kept, and is not counted again.",
            ) from e


@contextmanager
def runner(workers: int | None, scheduler: str | None) -> Iterator[Runner]:
    """Threads here unless a number of processes or a scheduler's address is given.

    Raises InputError where the scheduler does not answer, MissingToolError without Dask.
    """
    if workers is None and scheduler is None:
        yield Threads()
        return
    distributed = extra("distributed", "fleet", "running on Dask")
    own = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": "localhost:0"}
    known = {"address": scheduler, "timeout": _PATIENCE}
    with _settings():
        try:
            client = distributed.Client(**(own if scheduler is None else known))
        except (OSError, TimeoutError, ValueError) as error:
            where = scheduler or "the local cluster"
            raise InputError("does not answer", where=where, cure="Check the address.") from error
        with client:
            yield Dask(client)


@contextmanager
def _settings() -> Iterator[None]:
    """How Dask runs workers here; what it would leave among temporary files is left nowhere.

    Dask has workers give freed memory back at once. Counting takes the same arrays again and again:
    a recording of 60 MB cost 0.39 s of CPU that way, and 0.28 s without.
    """
    from dask import config

    with TemporaryDirectory(prefix="lbr2pgo-dask-") as folder:
        own = {
            "temporary-directory": folder,
            "distributed.nanny.pre-spawn-environ": {"OPENBLAS_NUM_THREADS": "1"},
        }
        with config.set(own):
            yield
