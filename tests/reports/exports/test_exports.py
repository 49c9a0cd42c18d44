"""Each export is read again: by the tool that it is for, or by its published schema."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders.evidence import gather_sources, program, source
from builders.processes import BUILD_IDS, CALL, LIBRARY, process_recording
from builders.recordings import PIE, RECORDING
from builders.sources import Sample

from lbr2pgo.analyses import code_profile
from lbr2pgo.analyses.code_profile import MEASURES, CodeProfile
from lbr2pgo.cli import main
from lbr2pgo.cli import report as command
from lbr2pgo.reports.build import ReportOptions, make_report, report_of
from lbr2pgo.reports.exports import EXPORTS
from lbr2pgo.reports.model import Report
from lbr2pgo.support.errors import InputError

WORDS = ["report", str(RECORDING), "--binary", str(PIE)]


@pytest.fixture(scope="module")
def report() -> Report:
    return make_report(ReportOptions((RECORDING,), PIE, libraries=False, tables=False, code=True))


@pytest.fixture(scope="module")
def code(report: Report) -> CodeProfile:
    assert report.code is not None
    return report.code


def by_function(code: CodeProfile) -> Counter[str]:
    """Instructions by innermost function."""
    total: Counter[str] = Counter()
    for stack, count in zip(code.stack.tolist(), code.instructions.tolist(), strict=True):
        total[code.frames[code.stacks[stack][-1]].function] += count
    return total


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Fields of a protobuf message: numbers and byte strings."""
    stream = io.BytesIO(message)

    def varint() -> int:
        value, shift = 0, 0
        while True:
            byte = stream.read(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while stream.tell() < len(message):
        key = varint()
        yield key >> 3, varint() if key & 7 == 0 else stream.read(varint())


def test_pprof_by_its_schema(report: Report, code: CodeProfile) -> None:
    found: dict[int, list[bytes]] = {}
    for number, content in fields(gzip.decompress(EXPORTS["pprof"].write(report))):
        found.setdefault(number, []).append(content)  # type: ignore[arg-type]
    texts = [text.decode() for text in found[6]]
    assert texts[0] == ""
    assert [texts[dict(fields(each))[1]] for each in found[1]] == list(MEASURES)  # type: ignore[index]
    functions = {dict(fields(f))[1]: texts[dict(fields(f))[2]] for f in found[5]}  # type: ignore[index]
    assert set(functions.values()) >= {"run", "walk", "next_token"}
    assert len(found[2]) == len(found[4]) == len(code)
    assert len({dict(fields(location))[3] for location in found[4]}) == len(code)
    mapping = dict(fields(found[3][0]))
    assert texts[mapping[5]] == str(PIE)  # type: ignore[index]
    assert texts[mapping[6]] == report.build_id  # type: ignore[index]


def test_pprof_has_a_mapping_for_each_file_of_a_process(tmp_path: Path) -> None:
    recording = process_recording(tmp_path / "perf.data", {f: str(f) for f in (PIE, LIBRARY)})
    options = ReportOptions((recording,), PIE, binaries=(LIBRARY,), tables=False, code=True)
    found: dict[int, list[bytes]] = {}
    for number, content in fields(gzip.decompress(EXPORTS["pprof"].write(make_report(options)))):
        found.setdefault(number, []).append(content)  # type: ignore[arg-type]
    texts = [text.decode() for text in found[6]]
    mappings = {each[1]: each for each in (dict(fields(content)) for content in found[3])}
    names = {number: Path(texts[each[5]]).name for number, each in mappings.items()}  # type: ignore[index]
    assert sorted(names.values()) == [PIE.name, LIBRARY.name]
    assert {texts[each[6]] for each in mappings.values()} == set(BUILD_IDS.values())  # type: ignore[index]
    places = set()
    for location in (dict(fields(content)) for content in found[4]):
        mapping = mappings[location[2]]
        start = int(mapping.get(2, 0))  # type: ignore[arg-type]
        assert start <= int(location[3]) < int(mapping[3])  # type: ignore[arg-type]
        places.add((names[location[2]], int(location[3]) - start))  # type: ignore[arg-type]
    assert {(PIE.name, CALL), (LIBRARY.name, 0x23F4)} <= places


def pprof() -> list[str]:
    if shutil.which("pprof"):
        return ["pprof"]
    if shutil.which("go"):
        return ["go", "tool", "pprof"]
    pytest.skip("pprof is not installed (make toolchain, as root: Go has it)")


def test_pprof_reads_it(report: Report, code: CodeProfile, tmp_path: Path) -> None:
    path = tmp_path / "x.pb.gz"
    path.write_bytes(EXPORTS["pprof"].write(report))
    shown = subprocess.run(
        [*pprof(), "-top", "-nodecount=0", "-nodefraction=0", "-sample_index=instructions", path],
        capture_output=True, text=True, check=True, env={**os.environ, "HOME": str(tmp_path)},
    ).stdout  # fmt: skip
    rows = re.findall(r"^\s*(\d+) +[\d.]+%.*?%  +\d+ +[\d.]+%  (.+?)(?: \(inline\))?$", shown, re.M)
    assert {name: int(flat) for flat, name in rows} == +by_function(code)


def test_speedscope(report: Report, code: CodeProfile) -> None:
    whole = json.loads(EXPORTS["speedscope"].write(report))
    profile = whole["profiles"][0]
    assert profile["name"] == "instructions executed, in samples"
    assert profile["endValue"] == sum(profile["weights"]) == int(code.instructions.sum())
    total: Counter[str] = Counter()
    for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
        total[whole["shared"]["frames"][stack[-1]]["name"]] += weight
    assert total == +by_function(code)
    assert {each["name"] for each in whole["profiles"]} >= {"cycles", "taken branches"}


def firefox_stacks(thread: dict[str, Any]) -> Counter[str]:
    """Weights by stack, outermost first, of functions."""
    stacks, frames, texts = thread["stackTable"], thread["frameTable"], thread["stringArray"]
    found: Counter[str] = Counter()
    for leaf, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"], strict=True):
        names = []
        while leaf is not None:
            function = frames["func"][stacks["frame"][leaf]]
            names.append(texts[thread["funcTable"]["name"][function]])
            leaf = stacks["prefix"][leaf]
        found[";".join(names[::-1])] += weight
    return found


def test_firefox(report: Report, code: CodeProfile) -> None:
    (thread,) = json.loads(EXPORTS["firefox"].write(report))["threads"]
    expected: Counter[str] = Counter()
    for stack, weight in zip(code.stacks, code.by_stack()["instructions"].tolist(), strict=True):
        expected[";".join(code.frames[frame].function for frame in stack)] += weight
    assert firefox_stacks(thread) == expected
    times = thread["samples"]["time"]
    assert times == sorted(times)
    missed = sum(data["count"] for data in thread["markers"]["data"])
    assert missed == int(code.mispredictions.sum()) > 0
    for table in (each for each in thread.values() if isinstance(each, dict)):
        columns = [column for column in table.values() if isinstance(column, list)]
        assert {len(column) for column in columns} == {table["length"]}


CHAINS = (
    Sample([(0x1000, 0x1040)], ip=0x1040, chain=(0x1040, 0x1005), weight=3),
    Sample([(0x1020, 0x1050)], ip=0x1051, chain=(0x1051, 0x1022, 0x7FFF00001234, 0x1005)),
    Sample([(0x1016, 0x1005), (0x1012, 0x1015)], ip=0x1006, chain=(0x1006,), weight=2),
)


@pytest.fixture(scope="module")
def called() -> Report:
    """Of a recording with call chains, one of them through a file that is nowhere."""
    gathered = gather_sources([source(*CHAINS)], program(), also=code_profile.NEEDS)
    return report_of(gathered, ReportOptions((Path("x"),), tables=False, code=True))


STACKS = {"main;g": 3, "main;[outside];dispatch;h": 1, "main": 2}


def test_pprof_reads_call_stacks(called: Report, tmp_path: Path) -> None:
    path = tmp_path / "x.pb.gz"
    path.write_bytes(EXPORTS["pprof"].write(called))

    def run(*words: str) -> str:
        return subprocess.run(
            [*pprof(), *words, path], capture_output=True, text=True, check=True,
            env={**os.environ, "HOME": str(tmp_path)},
        ).stdout  # fmt: skip

    traces = run("-traces").split(
        "-----------+-------------------------------------------------------"
    )
    found: Counter[str] = Counter()
    for trace in traces[1:-1]:
        (count, leaf), *callers = (line.split() for line in trace.strip().splitlines())
        found[";".join([*(name for (name,) in callers[::-1]), leaf])] += int(count)
    assert +found == STACKS
    top = run("-top", "-nodecount=0", "-nodefraction=0", "-sample_index=instructions")
    assert "[outside]" not in top
    assert "main" in top


def test_speedscope_has_call_stacks(called: Report) -> None:
    whole = json.loads(EXPORTS["speedscope"].write(called))
    frames, profile = whole["shared"]["frames"], whole["profiles"][0]
    found = {
        ";".join(frames[frame]["name"] for frame in stack): weight
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True)
    }
    assert found == STACKS
    assert len(whole["profiles"]) > 1


def test_firefox_has_call_stacks(called: Report) -> None:
    first, second = json.loads(EXPORTS["firefox"].write(called))["threads"]
    assert firefox_stacks(first) == STACKS
    assert sum(second["samples"]["weight"]) > 0


def test_otlp_has_call_stacks(called: Report) -> None:
    profiles = pytest.importorskip("opentelemetry.proto.profiles.v1development.profiles_pb2")
    data = profiles.ProfilesData.FromString(EXPORTS["otlp"].write(called))
    tables, texts = data.dictionary, data.dictionary.string_table
    found = {}
    for sample in data.resource_profiles[0].scope_profiles[0].profiles[-1].samples:
        lines = [
            line
            for place in tables.stack_table[sample.stack_index].location_indices
            for line in tables.location_table[place].lines
        ]
        names = [tables.function_table[line.function_index].name_strindex for line in lines]
        found[";".join(texts[name] for name in reversed(names))] = sample.values[0]
    assert found == STACKS


def test_parquet_holds_one_table() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    made = make_report(
        ReportOptions((RECORDING,), PIE, libraries=False, only=("hot-branches",), top=None)
    )
    table = made.table("hot-branches")
    assert table is not None
    again = parquet.read_table(io.BytesIO(EXPORTS["parquet"].write(made)))
    assert again.to_pylist() == list(table.records())
    assert str(again.schema.field("from_address").type) == "uint64"
    two = make_report(
        ReportOptions((RECORDING,), PIE, libraries=False, only=("hot-branches", "outcomes"))
    )
    with pytest.raises(InputError, match="--only"):
        EXPORTS["parquet"].write(two)


def test_what_a_table_says_of_itself_goes_with_it() -> None:
    pytest.importorskip("pyarrow")
    made = make_report(ReportOptions((RECORDING,), PIE, libraries=False, only=("hot-branches",)))
    arrow = made.tables[0].to_arrow()
    assert arrow.schema.metadata[b"title"] == b"Hot branches"
    assert arrow.schema.field("share").metadata[b"unit"] == b"share"
    assert arrow.column("from_line").null_count == made.tables[0].column("from_line").count(None)


@pytest.mark.parametrize("name", EXPORTS)
def test_the_command_writes_every_form(
    name: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    only = ["--only", "hot-branches"] if name == "parquet" else []
    code = main([*WORDS, *only, "--format", name])
    out = capfdbinary.readouterr().out
    assert (code, bool(out)) == ((2, False) if name == "folded" else (0, True))


def test_the_forms_of_the_command_are_those_there_are() -> None:
    assert set(command._FORMATS) == set(EXPORTS)


def test_page_and_form_in_one_go(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "x.html"
    assert main([*WORDS, "--html", str(page), "--format", "json"]) == 0
    assert json.loads(capfd.readouterr().out)["tables"]
    assert "</html>" in page.read_text()


def test_input_without_addresses_has_no_code() -> None:
    with pytest.raises(InputError, match="no addresses"):
        EXPORTS["pprof"].write(Report("t", "", None, ("x.csv",), (), (), ()))
