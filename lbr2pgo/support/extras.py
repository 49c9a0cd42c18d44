"""Packages that only some commands need, and which extra of ours installs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from lbr2pgo.support.errors import MissingToolError


def extra(module: str, name: str, what: str) -> Any:
    """A module that an extra installs; raises MissingToolError, which names the extra."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingToolError(
            f"{what} needs the package {package}, which is not installed",
            cure=f"Install it: pip install 'lbr2pgo[{name}]'.",
        ) from error
