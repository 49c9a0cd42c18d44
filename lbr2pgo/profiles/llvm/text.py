"""LLVM's sample profile as text, read and written.

::

    main:184019:0                         function, samples, head samples
     4: 534                               line offset, count
     4.2: 534 _Z3bar:500 _Z3foo:34        with discriminator and call targets
     4: vtables _ZTV3Bar:500              virtual tables of the objects called at 4
     7: _Z3inl:100                        an inlined copy; what is in it is indented further
      1: 100
     !CFGChecksum: 563022570642068        hash of the CFG, in profiles of pseudo probes
     !Attributes: 2
    [main:3.1 @ _Z3bar]:12:0              a function in a calling context

Source: LLVM 22, SampleProfWriterText::writeSample, SampleProfileReaderText::readImpl. One
difference: LLVM writes the virtual tables of a location that has both counts and inlined copies
twice, and then reads them twice as large; here they are written once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NoReturn

from lbr2pgo.profiles.llvm.contexts._preinliner import SHOULD_BE_INLINED
from lbr2pgo.profiles.llvm.sample_names import Context, Frame, Location, Name, order_key
from lbr2pgo.profiles.llvm.sample_profile import (
    LARGEST_COUNT,
    LARGEST_LINE,
    FunctionSamples,
    SampleProfile,
    add_saturating,
)
from lbr2pgo.program.pseudo_probes import DEEPEST_INLINING
from lbr2pgo.support.errors import InputError, OutputError, readable
from lbr2pgo.support.output import PathLike, write_to
from lbr2pgo.support.whole_text import refuse_cut_off

# ---------------------------------------------------------------------------- writing


def write(
    profile: SampleProfile, destination: PathLike | BinaryIO, *, by_name: bool = False
) -> None:
    """Write a profile to a path or a binary stream, line for line as LLVM does.

    With `by_name` functions stand in that order, which LLVM reads as well. Raises OutputError for
    a name that holds a line break.
    """

    def write_all(stream: BinaryIO) -> None:
        for function in profile.ordered(by_name=by_name):
            text = "".join(_function_lines(function, profile))
            stream.write(text.encode("utf-8", "surrogateescape"))

    write_to(destination, write_all)


def _function_lines(function: FunctionSamples, profile: SampleProfile) -> Iterator[str]:
    context = function.context or (Frame(function.name),)
    name = f"[{context_text(context)}]" if profile.is_cs else _text(function.name)
    yield f"{name}:{function.total}:{function.head}\n"
    yield from _inner_lines(function, profile, " ")


def _inner_lines(function: FunctionSamples, profile: SampleProfile, indent: str) -> Iterator[str]:
    for location in function.locations():
        calls = "".join(f" {_text(name)}:{count}" for name, count in function.calls(location))
        place = indent + place_text(location)
        yield f"{place}: {function.body.get(location, 0)}{calls}\n"
        yield from _vtable_line(function, location, place)
    for location in sorted(function.callsites.keys() | function.vtables.keys()):
        yield from _callsite_lines(function, location, profile, indent)
    if profile.is_probe_based:
        yield f"{indent}!CFGChecksum: {function.checksum}\n"
    if function.attributes:
        yield f"{indent}!Attributes: {function.attributes}\n"


def _callsite_lines(
    function: FunctionSamples, location: Location, profile: SampleProfile, indent: str
) -> Iterator[str]:
    place = indent + place_text(location)
    callees = function.callsites.get(location, {})
    for name in sorted(callees, key=order_key):
        yield f"{place}: {_text(name)}:{callees[name].total}\n"
        yield from _inner_lines(callees[name], profile, indent + " ")
    if location not in function.body and location not in function.call_targets:
        yield from _vtable_line(function, location, place)


def _vtable_line(function: FunctionSamples, location: Location, place: str) -> Iterator[str]:
    vtables = function.vtables.get(location)
    if vtables:
        ordered = sorted(vtables.items(), key=lambda item: order_key(item[0]))
        counts = "".join(f"{_text(name)}:{count} " for name, count in ordered)
        yield f"{place}: vtables {counts}\n"


def place_text(location: Location) -> str:
    """A place in a function as text: `3`, or `3.1` with a discriminator."""
    line, discriminator = location
    return f"{line}.{discriminator}" if discriminator else str(line)


def _text(name: Name) -> str:
    text = str(name)
    if "\n" in text:
        raise OutputError(f"a text profile can't hold a name with a line break: {text!r}")
    return text


def context_text(context: Context) -> str:
    """A calling context as text: `main:3.1 @ _Z3bar`."""
    callers = [f"{_text(f.function)}:{place_text(f.location)} @ " for f in context[:-1]]
    return "".join(callers) + _text(context[-1].function)


# ---------------------------------------------------------------------------- reading

_NUMBER = "([0-9]{1,20})"
_HEAD = re.compile(rf"([^ ].*):{_NUMBER}:{_NUMBER}")
_PLACE = re.compile(rf"( +){_NUMBER}(?:\.{_NUMBER})?: (.*)")
_COUNT = re.compile(rf"{_NUMBER}(?= |$)")
_INLINED = re.compile(rf"(.+):{_NUMBER}")
# A name may hold blanks and colons: it ends at the first colon before a whole number.
_CALL = re.compile(rf" +([^ :].*?):{_NUMBER}(?= |$)")
_VTABLE = re.compile(rf" *([^:]+):{_NUMBER}(?: +|$)")
_METADATA = re.compile(rf"( +)!(?:(CFGChecksum|Attributes): *{_NUMBER} *|Flat)")
_FRAME = re.compile(rf"([^:]+)(?::{_NUMBER}(?:\.{_NUMBER})?)?")
_NOTHING = re.compile(" *(?:#.*)?")

_VTABLES = "vtables "


def read(path: PathLike) -> SampleProfile:
    """Read a text profile.

    Counts of a function or a location that comes twice are added up. Raises InputError that names
    the line: no such file, another format, a broken line, a number out of range.
    """
    with readable(path), open(path, "rb") as stream:
        found = parse(stream, str(path))
    refuse_cut_off(path)
    return found


def is_text_profile(head: bytes) -> bool:
    """Whether a file that begins with these bytes is a text profile that is not empty."""
    for line in head.split(b"\n"):
        text = line.decode("utf-8", "surrogateescape").removesuffix("\r")
        if not _NOTHING.fullmatch(text):
            return _HEAD.fullmatch(text) is not None
    return False


def parse(lines: Iterable[bytes], where: str) -> SampleProfile:
    """As `read`, from lines (a binary stream, say); `where` names them in errors."""
    reader = _Reader(where)
    for line in lines:
        reader.line += 1
        text = line.decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")
        if not _NOTHING.fullmatch(text):
            reader.feed(text)
    return reader.profile


class _Reader:
    """Builds a profile from line after line."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.line = 0
        self.profile = SampleProfile()
        self.stack: list[FunctionSamples] = []
        """The function that is being read, and the inlined copies down to where we are."""
        self.closed = 0
        """Indent of the last line if it was metadata: nothing else may follow at it."""

    def feed(self, text: str) -> None:
        if not text.startswith(" "):
            self._start_function(text)
        elif not self.stack:
            self._fail("a function's line before the first function", text)
        elif metadata := _METADATA.fullmatch(text):
            self._take_metadata(metadata)
        elif match := _PLACE.fullmatch(text):
            self._take_line(match, text)
        else:
            self._fail("expected ' LINE[.DISCRIMINATOR]: COUNT'", text)

    def _start_function(self, text: str) -> None:
        match = _HEAD.fullmatch(text)
        if match is None:
            self._fail("expected 'FUNCTION:SAMPLES:HEAD_SAMPLES'", text)
        name, total, head = match.groups()
        key = self._context(name) if name.startswith("[") else name
        is_cs = isinstance(key, tuple)
        if self.stack and is_cs != self.profile.is_cs:
            self._fail("functions with and without calling context in one profile", text)
        self.profile.is_cs = is_cs
        function = self.profile.function(key)
        function.total = add_saturating(function.total, self._number(total, LARGEST_COUNT))
        function.head = add_saturating(function.head, self._number(head, LARGEST_COUNT))
        self.stack = [function]
        self.closed = 0

    def _context(self, text: str) -> Context:
        frames = []
        for part in text[1:].removesuffix("]").split(" @ "):
            match = _FRAME.fullmatch(part)
            if match is None:
                self._fail("expected '[CALLER:LINE[.DISCRIMINATOR] @ … @ FUNCTION]'", text)
            name, line, discriminator = match.groups()
            frames.append(Frame(name, self._location(line or "0", discriminator)))
        return tuple(frames)

    def _take_line(self, match: re.Match[str], text: str) -> None:
        indent, line, discriminator, rest = match.groups()
        function = self._enter(len(indent), text)
        if len(indent) == self.closed:
            self._fail("nothing but metadata may follow metadata", text)
        location = self._location(line, discriminator)
        if count := _COUNT.match(rest):
            function.add_body(location, self._number(count[1], LARGEST_COUNT))
            for name, calls in self._counts(_CALL, rest, count.end()).items():
                function.add_call(location, name, calls)
        elif rest.startswith(_VTABLES):
            for name, calls in self._counts(_VTABLE, rest, len(_VTABLES)).items():
                function.add_vtable(location, name, calls)
        else:
            self._start_inlined(function, location, rest)

    def _enter(self, indent: int, text: str) -> FunctionSamples:
        """The function that a line with this indent is about."""
        if indent > len(self.stack):
            self._fail("indented too far", text)
        del self.stack[indent:]
        return self.stack[-1]

    def _counts(self, pattern: re.Pattern[str], text: str, start: int) -> dict[Name, int]:
        counts: dict[Name, int] = {}
        while start < len(text):
            match = pattern.match(text, start)
            if match is None:
                self._fail("expected 'NAME:COUNT'", text[start:])
            counts[match[1]] = self._number(match[2], LARGEST_COUNT)
            start = match.end()
        return counts

    def _start_inlined(self, caller: FunctionSamples, location: Location, text: str) -> None:
        match = _INLINED.fullmatch(text)
        if match is None or text[0] in "0123456789":
            self._fail("expected a count or 'INLINED_FUNCTION:SAMPLES'", text)
        if len(self.stack) > DEEPEST_INLINING:
            self._fail(f"functions are inlined more than {DEEPEST_INLINING} deep", text)
        callee = caller.callee(location, match[1])
        callee.total = add_saturating(callee.total, self._number(match[2], LARGEST_COUNT))
        self.stack.append(callee)
        self.closed = 0

    def _take_metadata(self, match: re.Match[str]) -> None:
        indent, kind, value = match.groups()
        function = self._enter(len(indent), match[0])
        self.closed = len(indent)
        if kind == "CFGChecksum":
            function.checksum = self._number(value, LARGEST_COUNT)
            self.profile.is_probe_based |= function.checksum != 0 and len(indent) == 1
        elif kind == "Attributes":
            function.attributes = self._number(value, 0xFFFFFFFF)
            self.profile.is_preinlined |= bool(function.attributes & SHOULD_BE_INLINED)

    def _location(self, line: str, discriminator: str | None) -> Location:
        return self._number(line, LARGEST_LINE), self._number(discriminator or "0", 0xFFFFFFFF)

    def _number(self, text: str, largest: int) -> int:
        number = int(text)
        if number > largest:
            self._fail(f"a number is larger than {largest}", text)
        return number

    def _fail(self, what: str, text: str) -> NoReturn:
        shown = text[:120].encode("utf-8", "backslashreplace").decode()
        raise InputError(f"{what}, found {shown!r}", where=f"{self.where}:{self.line}")
