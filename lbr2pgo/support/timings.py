"""Where the time of a run went, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter


class Timings:
    """Seconds and input bytes of each stage, in the order in which stages were entered."""

    def __init__(self, on_stage: Callable[[str, int], None] | None = None) -> None:
        """`on_stage` is called with the name of each stage that begins, and its bytes."""
        self._on_stage = on_stage
        self.seconds: dict[str, float] = {}
        self.bytes: dict[str, int] = {}

    @contextmanager
    def stage(self, name: str, size: int = 0) -> Iterator[None]:
        """Add what happens inside to a stage; `size` is how many bytes it works on."""
        if self._on_stage is not None:
            self._on_stage(name, size)
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - start
            self.bytes[name] = self.bytes.get(name, 0) + size

    def lines(self) -> Iterator[str]:
        """One line a stage, and one for all."""
        for name, seconds in self.seconds.items():
            size = self.bytes[name]
            rate = f"  {size / 1e6:10.1f} MB" if size else ""
            yield f"{name:<28}{seconds:8.3f} s{rate}"
        yield f"{'all stages':<28}{sum(self.seconds.values()):8.3f} s"
