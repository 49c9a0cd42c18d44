"""Recorders: hardware through perf, or the software LBR.

`lbr2pgo.record(…)` is the task of this name (`recording.record`), and this folder is also
`lbr2pgo.record` to Python: so that both are, it can be called.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspect import Signature

    from lbr2pgo.record.recording import RecordedFile


class _Room(ModuleType):
    def __call__(self, *command: Any, **options: Any) -> RecordedFile:
        from lbr2pgo.record.recording import record

        return record(*command, **options)

    @property
    def __signature__(self) -> Signature:
        """What `help` and notebooks show of the arguments."""
        from inspect import signature

        from lbr2pgo.record.recording import record

        return signature(record)


sys.modules[__name__].__class__ = _Room
