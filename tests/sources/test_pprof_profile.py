"""pprof's profiles: by a plain writer, and of Go's own profiler."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders import perf_data as build
from builders.fixtures import Run, Tool
from builders.instruction_samples import drawn, preaggregated
from builders.perf_data import Event
from builders.processes import LIBRARY, MAIN, in_library, in_program, process_recording
from builders.protobuf import field, message, otlp, pprof
from builders.recordings import PIE, RECORDING, STATIC, STATIC_RECORDING, recorded

import lbr2pgo
from lbr2pgo.analyses.judging import exact_edges_of
from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.counting.count_instructions import count_instructions
from lbr2pgo.counting.place import ImageFacts
from lbr2pgo.program.program import Program
from lbr2pgo.replay.recorded_program import recorded_program
from lbr2pgo.reports.build import ReportOptions, make_report
from lbr2pgo.reports.exports import EXPORTS
from lbr2pgo.sources import open_source
from lbr2pgo.sources.pprof_profile import FORMAT
from lbr2pgo.sources.processor_samples import ProcessorSamples
from lbr2pgo.support.addresses import in_file, slot_of
from lbr2pgo.support.errors import InputError

EXACT = Path(str(RECORDING).replace(".perf.data", ".exact.npz"))
GO = """package main
import ("fmt"; "os"; "runtime/pprof")
func work(n int) int {
	s := 0; for i := 0; i < n; i++ { if i%3 == 0 { s += i } else { s ^= i } }; return s
}
func main() {
	f, _ := os.Create(os.Args[1]); pprof.StartCPUProfile(f); t := 0
	for k := 0; k < 40; k++ { t += work(10000000) }
	pprof.StopCPUProfile(); f.Close(); fmt.Println(t)
}
"""


def rows(source: object) -> list[tuple[int, int]]:
    assert isinstance(source, ProcessorSamples)
    (batch,) = source.batches()
    return list(zip(batch.ip.tolist(), batch.weight.tolist(), strict=True))


@pytest.fixture
def write(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(content: bytes) -> Path:
        path = tmp_path / "a.pprof"
        path.write_bytes(content)
        return path

    return write


def test_leaves_and_values_are_read(write) -> None:
    content = pprof([(0x1010, 3), (0x1020, 4)], start=0x1000, limit=0x2000, build_id="ab")
    for packed in (content, gzip.decompress(content)):
        source = open_source(write(packed))
        assert isinstance(source, ProcessorSamples)
        assert rows(source) == [(0x1010, 3), (0x1020, 4)]
        assert source.info.build_ids == {"/app": "ab"}
        assert source.info.events[0].name == "samples"
        (mapping,) = source.space_events()
        assert (mapping.start, mapping.length, mapping.path) == (0x1000, 0x1000, "/app")
        assert source.health() == {}


def test_times_are_counted_by_their_period(write) -> None:
    content = pprof([(16, 30_000_000)], measure=("cpu", "nanoseconds"), period=10_000_000)
    assert rows(open_source(write(content))) == [(16, 3)]


def test_a_period_may_have_another_unit(write) -> None:
    content = gzip.decompress(pprof([(16, 30_000_000)], measure=("cpu", "nanoseconds"), period=10))
    content += field(11, message(_1=1, _2=5)) + field(6, b"milliseconds")
    assert rows(open_source(write(content))) == [(16, 3)]


def test_samples_count_as_in_another_format(write, tmp_path: Path) -> None:
    program = Program.open(PIE)
    address, count = drawn(exact_edges_of(EXACT, program), program, 5000)
    text = tmp_path / "text"
    text.write_text(preaggregated(address, count))
    base = 0x555500000000
    segment = next(each for each in program.image.layout.segments if each.executable)
    shift = base - segment.address
    samples = list(zip((address + np.uint64(shift)).tolist(), count.tolist(), strict=True))
    moved = pprof(
        samples, start=base, limit=base + segment.file_size, offset=segment.file_offset,
        path=str(PIE), build_id=program.image.build_id or "",
    )  # fmt: skip
    linked = pprof(list(zip(address.tolist(), count.tolist(), strict=True)), path=str(PIE))
    facts = ImageFacts(program.image.layout)
    wanted = count_instructions(open_source(text), facts).counts
    for content in (moved, linked):
        found = count_instructions(open_source(write(content)), facts).counts
        assert found.address.tolist() == wanted.address.tolist()
        assert found.count.tolist() == wanted.count.tolist()


def test_members_of_gzip_are_one_profile(write) -> None:
    whole = gzip.decompress(pprof([(16, 3)]))
    packed = gzip.compress(whole[:9]) + gzip.compress(whole[9:])
    assert rows(open_source(write(packed))) == [(16, 3)]


def test_the_same_samples_as_perf_data_make_the_same_profile(tmp_path: Path) -> None:
    program = Program.open(STATIC)
    exact = Path(str(STATIC_RECORDING).replace(".perf.data", ".exact.npz"))
    address, count = drawn(exact_edges_of(exact, program), program, 3000)
    samples = list(zip(address.tolist(), count.tolist(), strict=True))
    ips = [each for each, times in samples for _ in range(times)]
    event = Event(build.IP | build.TID | build.TIME)
    (tmp_path / "perf.data").write_bytes(
        recorded([()] * len(ips), ips=ips, event=event, path=str(STATIC))
    )
    (tmp_path / "cpu.pprof").write_bytes(
        pprof(samples, start=0x202000, limit=0x2A2000, offset=0x1000, path=str(STATIC))
    )
    (tmp_path / "cpu.otlp").write_bytes(otlp(samples, path=str(STATIC)))
    made = []
    for name in ("perf.data", "cpu.pprof", "cpu.otlp"):
        done = lbr2pgo.convert(tmp_path / name, STATIC, no_lbr=True, fdata=tmp_path / "fdata")
        made.append((tmp_path / "fdata").read_bytes())
        assert any("branch recorder" in note for note in done.notes) == (name != "perf.data")
    assert made[0] == made[1] == made[2] != b""


@pytest.mark.parametrize("form", ["pprof", "otlp"])
def test_our_own_export_holds_how_often_instructions_ran(tmp_path: Path, form: str) -> None:
    if form == "otlp":
        pytest.importorskip("opentelemetry.proto.profiles.v1development.profiles_pb2")
    report = make_report(ReportOptions((RECORDING,), PIE, libraries=False, tables=False, code=True))
    path = tmp_path / "own"
    path.write_bytes(EXPORTS[form].write(report))
    layout = Program.open(PIE).image.layout
    found = count_instructions(open_source(path), ImageFacts(layout)).counts
    flow = convert(ConvertOptions((RECORDING,), PIE)).flow
    ran = flow.executed > 0
    assert found.address.tolist() == flow.instructions.address[ran].tolist()
    assert found.count.tolist() == flow.executed[ran].tolist()


@pytest.mark.parametrize("form", ["pprof", "otlp"])
def test_our_own_export_holds_libraries_too(tmp_path: Path, form: str) -> None:
    if form == "otlp":
        pytest.importorskip("opentelemetry.proto.profiles.v1development.profiles_pb2")
    stack = [  # main's first instructions, and before them those of frame_dummy
        (in_library(0x242B), in_library(0x244A)),
        (in_program(0x1C54), in_library(MAIN)),
        (in_library(0x242B), in_program(0x1C50)),
    ]
    places = {f: str(f) for f in (PIE, LIBRARY)}
    recording = process_recording(tmp_path / "perf.data", places, [stack])
    options = ReportOptions((recording,), PIE, binaries=(LIBRARY,), tables=False, code=True)
    report, path = make_report(options), tmp_path / "own"
    assert report.code is not None
    path.write_bytes(EXPORTS[form].write(report))
    rows = zip(report.code.address.tolist(), report.code.instructions.tolist(), strict=True)
    ran = [(slot_of(address), in_file(address), times) for address, times in rows if times]
    for program, is_library in ((PIE, False), (LIBRARY, True)):
        facts = ImageFacts(Program.open(program).image.layout)
        found = count_instructions(open_source(path), facts).counts
        wanted = [(address, times) for slot, address, times in ran if (slot > 0) == is_library]
        assert wanted
        assert list(zip(found.address.tolist(), found.count.tolist(), strict=True)) == wanted


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (pprof([(0, 3)]), "has names of functions, and no addresses"),
        (pprof([(16, 3)], measure=("alloc_space", "bytes")), "it tells of alloc_space, and not of"),
        (pprof([(16, 3)])[:-9], "it is cut off"),
        (pprof([(16, 3)]) + b"junk", "something else stands behind its end"),
        (gzip.decompress(pprof([(16, 3)]))[:-1], "is cut off"),
        (field(1, message(_1=1, _2=2)), "@0x2: .* text 1 is named here, and the file has 0"),
        (gzip.compress(bytes(1 << 20) * 300), "larger than 256 MiB"),
        (
            gzip.compress(field(1, message(_1=1)) + b"\x32\x00" * (1 << 21)),
            "more than 1,048,576 texts",
        ),
        (pprof([(16, 1 << 63)]), "has no samples"),
        (pprof([(16, 3), (17, 5)], measure=("cpu", "nanoseconds")), "not the period"),
    ],
    ids=range(10),
)
def test_what_can_not_be_used(write, content: bytes, why: str) -> None:
    with pytest.raises(InputError, match=why) as caught:
        FORMAT.open(write(content))
    assert "a.pprof" in str(caught.value)


def test_damage_in_what_was_packed_says_so(write) -> None:
    whole = gzip.decompress(pprof([(16, 3)]))
    with pytest.raises(InputError, match=r"a.pprof \(unpacked\)@0x2: .* cut off"):
        FORMAT.open(write(gzip.compress(whole[:4])))
    with pytest.raises(InputError, match=r"a.pprof@0x5: .* cut off"):
        FORMAT.open(write(gzip.compress(whole)[:5]))


def test_padding_behind_what_is_packed_is_nothing(write) -> None:
    assert rows(open_source(write(pprof([(16, 3)]) + bytes(512)))) == [(16, 3)]


def test_numbers_below_0_are_left_out_and_told(write) -> None:
    source = open_source(write(pprof([(16, 3), (17, (1 << 64) - 2)])))
    assert rows(source) == [(16, 3)]
    assert list(source.health().values()) == [1]


def test_two_profiles_in_a_row_are_refused(write) -> None:
    both = pprof([(16, 3)]) + pprof([(17, 3)])
    with pytest.raises(InputError, match="number 1 is there twice"):
        open_source(write(both))


def test_what_tells_of_memory_is_refused_whatever_its_default(write) -> None:
    content = gzip.decompress(pprof([(16, 3)], measure=("allocs", "count"))) + field(14, 1)
    with pytest.raises(InputError, match="it tells of allocs, and not of processors"):
        open_source(write(content))


def test_the_first_mapping_is_the_program(write) -> None:
    build_id = Program.open(PIE).image.build_id or ""
    content = gzip.decompress(pprof([(0x1100, 3)], path=str(PIE), build_id=build_id))
    content += field(3, message(_1=2, _2=0x7000, _3=0x8000, _5=5)) + field(6, b"/lib/other.so")
    content += field(4, message(_1=9, _2=2, _3=0x7001)) + field(2, message(_1=b"\x09", _2=b"\x05"))
    source = open_source(write(content))
    assert isinstance(source, ProcessorSamples)
    assert len(source.space_events()) == 2
    assert recorded_program([source]) == PIE


def test_another_build_is_refused(write) -> None:
    content = pprof([(0x1100, 5000)], path=str(PIE), build_id="abcd")
    with pytest.raises(InputError, match=r"another build than the recorded .*abcd there"):
        lbr2pgo.convert(write(content), PIE, no_lbr=True, fdata=write(content).with_name("f"))


def test_other_files_are_none(write) -> None:
    for content in (b"\n#text\n", b"\n\x04text", gzip.compress(b"text"), b"\x1f\x8bjunk"):
        with pytest.raises(InputError, match="is no profile of a known format"):
            open_source(write(content))


@pytest.mark.slow
def test_go_s_own_profile(tmp_path: Path, tool: Tool, run: Run) -> None:
    (tmp_path / "a.go").write_text(GO)
    go, env = tool("go"), {"GO111MODULE": "off", "GOCACHE": str(tmp_path), "HOME": str(tmp_path)}
    run(go, "build", "-o", "app", "a.go", cwd=tmp_path, env={"PATH": "/usr/bin:/bin", **env})
    profile = tmp_path / "cpu.pprof"
    run(tmp_path / "app", profile)
    raw = run(go, "tool", "pprof", "-raw", profile, env={"PATH": "/usr/bin:/bin", **env}).stdout
    told = re.findall(r"^ +(\d+) +\d+: (\d+)", raw, re.MULTILINE)
    places = dict(re.findall(r"^ +(\d+): (0x[0-9a-f]+) ", raw, re.MULTILINE))
    wanted: Counter[int] = Counter()
    for count, leaf in told:
        wanted[int(places[leaf], 16)] += int(count)
    assert dict(rows(open_source(profile))) == wanted
    assert wanted.total() > 10
