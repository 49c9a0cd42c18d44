"""OpenTelemetry profiles, read by the classes that the specification generates."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from builders.processes import BUILD_IDS, LIBRARY, process_recording
from builders.recordings import PIE, RECORDING

from lbr2pgo.analyses.code_profile import MEASURES
from lbr2pgo.reports.build import ReportOptions, make_report
from lbr2pgo.reports.exports import EXPORTS
from lbr2pgo.reports.model import Report

pytest.importorskip("opentelemetry.proto")
from opentelemetry.proto.profiles.v1development import profiles_pb2


def read(report: Report) -> Any:
    return profiles_pb2.ProfilesData.FromString(EXPORTS["otlp"].write(report))


def report_of(recording: Path, **options: Any) -> Report:
    return make_report(ReportOptions((recording,), PIE, tables=False, code=True, **options))


def profiles_of(data: Any) -> dict[str, Any]:
    (resource,) = data.resource_profiles
    (scope,) = resource.scope_profiles
    texts = data.dictionary.string_table
    return {texts[each.sample_type.type_strindex]: each for each in scope.profiles}


def test_each_measure_is_a_profile_of_its_values_by_function() -> None:
    report = report_of(RECORDING, libraries=False)
    data, code = read(report), report.code
    assert code is not None
    tables, texts = data.dictionary, data.dictionary.string_table
    found = profiles_of(data)
    assert set(found) <= {*MEASURES, "samples"}
    for name in MEASURES:
        wanted: Counter[str] = Counter()
        for stack, value in zip(code.stack.tolist(), getattr(code, name).tolist(), strict=True):
            wanted[code.frames[code.stacks[stack][-1]].function] += value
        told: Counter[str] = Counter()
        for sample in found[name].samples:
            location = tables.stack_table[sample.stack_index].location_indices[0]
            function = tables.location_table[location].lines[0].function_index
            told[texts[tables.function_table[function].system_name_strindex]] += sample.values[0]
        assert told == +wanted


def test_entry_0_of_each_table_stands_for_none() -> None:
    tables = read(report_of(RECORDING, libraries=False)).dictionary
    assert tables.string_table[0] == ""
    for field, rows in tables.ListFields():
        if field.name != "string_table":
            assert rows[0] == type(rows[0])(), field.name


def test_files_have_their_addresses_and_build_ids(tmp_path: Path) -> None:
    recording = process_recording(tmp_path / "perf.data", {f: str(f) for f in (PIE, LIBRARY)})
    tables = read(report_of(recording, binaries=(LIBRARY,))).dictionary
    texts = tables.string_table
    ids = {}
    for mapping in tables.mapping_table[1:]:
        (index,) = mapping.attribute_indices
        attribute = tables.attribute_table[index]
        assert texts[attribute.key_strindex] == "process.executable.build_id.gnu"
        ids[Path(texts[mapping.filename_strindex]).name] = attribute.value.string_value
    assert ids == {PIE.name: BUILD_IDS[PIE], LIBRARY.name: BUILD_IDS[LIBRARY]}
    for location in tables.location_table[1:]:
        if location.mapping_index:
            mapping = tables.mapping_table[location.mapping_index]
            assert mapping.memory_start <= location.address < mapping.memory_limit


def test_the_bytes_are_the_same_each_time() -> None:
    one, other = (report_of(RECORDING, libraries=False) for _ in range(2))
    assert EXPORTS["otlp"].write(one) == EXPORTS["otlp"].write(other)
