"""Written sample profiles: recognised, read, and shown as text, whole or of one function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from io import BytesIO

from lbr2pgo.profiles.base import Merged, Merging, Reader
from lbr2pgo.profiles.llvm import extbinary, text
from lbr2pgo.profiles.llvm.sample_names import guid
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile


def lines(profile: SampleProfile) -> Iterator[str]:
    """The text form, whatever form the profile was read from."""
    stream = BytesIO()
    text.write(profile, stream)
    written = stream.getvalue().decode("utf-8", "surrogateescape")
    return iter(written.removesuffix("\n").split("\n") if written else ())


def of_function(profile: SampleProfile, function: str) -> Iterator[str] | None:
    """The function itself, then a comment for each inlined copy; None if there is neither."""
    wanted = guid(function)
    own = {key: each for key, each in profile.functions.items() if guid(each.name) == wanted}
    nested = [line for top in profile.ordered() for line in _inlined(top, str(top.name), wanted)]
    if not own and not nested:
        return None
    return iter([*lines(replace(profile, functions=own)), *nested])


def _inlined(function: FunctionSamples, chain: str, wanted: int) -> Iterator[str]:
    for (line, discriminator), callee in function.inlined():
        place = f"{line}.{discriminator}" if discriminator else str(line)
        inner = f"{chain}:{place} @ {callee.name}"
        if guid(callee.name) == wanted:
            yield f"# inlined, {callee.total} samples: {inner}"
        yield from _inlined(callee, inner, wanted)


def functions(profile: SampleProfile) -> set[str]:
    """Names of all functions, of those that are inlined too."""
    return {str(each.name) for top in profile.functions.values() for each in _all(top)}


def _all(function: FunctionSamples) -> Iterator[FunctionSamples]:
    yield function
    for _, callee in function.inlined():
        yield from _all(callee)


def merged(profiles: Iterable[tuple[SampleProfile, int]]) -> Merged[SampleProfile]:
    """The sum, as `llvm-profdata merge --sample` makes it."""
    total, left_out = SampleProfile(), 0
    for profile, weight in profiles:
        left_out += total.merge(profile, weight)
    notes = (f"{left_out:,} functions are left out: of other code, by their checksums",)
    return Merged(total, notes if left_out else ())


_NAME = "LLVM sample profiles"

READERS = (
    Reader(
        extbinary.is_binary_profile, extbinary.read, lines, of_function, functions,
        Merging(_NAME, merged, extbinary.write),
    ),
    Reader(
        text.is_text_profile, text.read, lines, of_function, functions,
        Merging(_NAME, merged, text.write),
    ),
)  # fmt: skip
