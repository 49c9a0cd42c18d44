"""OpenTelemetry profiles (v1development), as collectors and what stores profiles take them.

A profile of each measure, since one holds one kind of value; where call stacks were recorded, they
are a profile of their own. Entry 0 of each table stands for none.

Source: open-telemetry/opentelemetry-proto: opentelemetry/proto/profiles/v1development;
OpenTelemetry: semantic conventions, attributes of processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lbr2pgo import __version__
from lbr2pgo.analyses.code_profile import MEASURES, CodeProfile
from lbr2pgo.reports.exports.code_frames import (
    CodeSpan,
    call_stacks,
    code_of,
    code_spans,
    name_shown,
    outside,
)
from lbr2pgo.reports.model import Report
from lbr2pgo.support.addresses import slot_of
from lbr2pgo.support.extras import extra

_PACKAGE = "opentelemetry.proto"
_BUILD_ID, _NAME = "process.executable.build_id.gnu", "process.executable.name"


def as_otlp(report: Report) -> bytes:
    """The request that a collector takes, which is also a file of `ProfilesData`.

    Raises InputError where the report has no code, and MissingToolError without the package.
    """
    made: bytes = _Request(report, code_of(report)).message.SerializeToString(deterministic=True)
    return made


def messages(part: str = "profiles.v1development.profiles_pb2") -> Any:
    """The classes of its messages; raises MissingToolError without opentelemetry-proto."""
    return extra(f"{_PACKAGE}.{part}", "otlp", "--format otlp")


class _Request:
    """Profiles, and the tables that they share."""

    def __init__(self, report: Report, code: CodeProfile) -> None:
        self.message = messages().ProfilesData()
        self._tables = self.message.dictionary
        self._texts, self._attributes = {"": 0}, dict[tuple[str, str], int]()
        self._stacks = dict[tuple[int, ...], int]()
        for table in ("mapping", "location", "function", "link", "attribute", "stack"):
            getattr(self._tables, f"{table}_table").add()
        mapped = code_spans(report, code)
        self._mappings(mapped)
        self._functions(code)
        self._locations(code, list(mapped))
        self._profiles(report, code)
        self._tables.string_table.extend(self._texts)

    def _text(self, text: str) -> int:
        plain = text.encode("utf-8", "replace").decode()
        return self._texts.setdefault(plain, len(self._texts))

    def _attribute(self, key: str, value: str) -> int:
        if (key, value) not in self._attributes:
            self._attributes[key, value] = len(self._tables.attribute_table)
            made = self._tables.attribute_table.add(key_strindex=self._text(key))
            made.value.string_value = value
        return self._attributes[key, value]

    def _mappings(self, mapped: Mapping[int, CodeSpan]) -> None:
        for each in mapped.values():
            id_ = each.file.build_id
            self._tables.mapping_table.add(
                memory_start=each.start, memory_limit=each.limit,
                filename_strindex=self._text(each.file.name),
                attribute_indices=[self._attribute(_BUILD_ID, id_)] if id_ else [],
            )  # fmt: skip

    def _functions(self, code: CodeProfile) -> None:
        """Of each frame, then of what is outside."""
        for frame in code.frames:
            self._tables.function_table.add(
                name_strindex=self._text(name_shown(frame)),
                system_name_strindex=self._text(frame.function),
                filename_strindex=self._text(frame.file), start_line=frame.start_line,
            )  # fmt: skip
        for name in outside(code):
            self._tables.function_table.add(name_strindex=self._text(name))

    def _locations(self, code: CodeProfile, slots: Sequence[int]) -> None:
        """One for each instruction, the innermost frame first, then of what is outside."""
        mapping = {slot: number for number, slot in enumerate(slots, 1)}
        for address, stack in zip(code.address.tolist(), code.stack.tolist(), strict=True):
            location = self._tables.location_table.add(
                mapping_index=mapping[slot_of(address)], address=address
            )
            for frame in reversed(code.stacks[stack]):
                location.lines.add(function_index=frame + 1, line=code.frames[frame].line)
        for number in range(len(outside(code))):
            location = self._tables.location_table.add()
            location.lines.add(function_index=len(code.frames) + 1 + number)

    def _profiles(self, report: Report, code: CodeProfile) -> None:
        resource = self.message.resource_profiles.add()
        resource.resource.attributes.add(key=_NAME).value.string_value = os.path.basename(
            report.binary
        )
        scope = resource.scope_profiles.add()
        scope.scope.name, scope.scope.version = "lbr2pgo", __version__
        for name in MEASURES:
            values = getattr(code, name).tolist()
            self._profile(scope, name, (([i], value) for i, value in enumerate(values, 1) if value))
        self._profile(scope, "samples", call_stacks(code))

    def _profile(self, scope: Any, name: str, stacks: Iterator[tuple[list[int], int]]) -> None:
        """A profile of stacks of locations, the innermost first, unless there are none."""
        samples = [(self._stack(locations), value) for locations, value in stacks]
        if samples:
            profile = scope.profiles.add()
            profile.sample_type.type_strindex = self._text(name)
            profile.sample_type.unit_strindex = self._text("count")
            for stack, value in samples:
                profile.samples.add(stack_index=stack, values=[value])

    def _stack(self, locations: list[int]) -> int:
        key = tuple(locations)
        if key not in self._stacks:
            self._stacks[key] = len(self._tables.stack_table)
            self._tables.stack_table.add(location_indices=locations)
        return self._stacks[key]
