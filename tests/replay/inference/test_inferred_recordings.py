"""Recordings without branches, converted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from builders.instruction_samples import drawn, preaggregated
from builders.recordings import PIE, STATIC

from lbr2pgo.analyses.accuracy import measure
from lbr2pgo.analyses.judging import exact_edges_of
from lbr2pgo.cli import main
from lbr2pgo.conversion import Conversion, ConvertOptions, convert
from lbr2pgo.model.incomplete import EmptyProfileError, IncompleteError
from lbr2pgo.model.waterfall import check, rows
from lbr2pgo.profiles.registry import output, steps
from lbr2pgo.program.code.regions import code_ranges
from lbr2pgo.program.program import Program
from lbr2pgo.replay.inference.inferred_recordings import precision_notes
from lbr2pgo.sources.base import Addresses, EventInfo, SourceInfo

EXACT = PIE.parents[1] / "recordings" / "x86-64-interp.pie.exact.npz"
Sampled = Callable[[int], Path]


@pytest.fixture
def sampled(tmp_path: Path) -> Sampled:
    def make(samples: int) -> Path:
        program = Program.open(PIE)
        path = tmp_path / "samples.preagg"
        path.write_text(preaggregated(*drawn(exact_edges_of(EXACT, program), program, samples)))
        return path

    return make


def converted(path: Path, **options: object) -> Conversion:
    return convert(ConvertOptions((path,), PIE, no_lbr=True, **options))  # type: ignore[arg-type]


def test_twenty_thousand_samples_come_near_to_what_ran(sampled: Sampled) -> None:
    program = Program.open(PIE)
    done = converted(sampled(20_000))
    found = measure(done.flow, exact_edges_of(EXACT, program), program)
    assert found.blocks.overlap > 0.98
    # Most edges are indirect jumps between labels, and samples don't tell which leads where.
    assert found.edges.overlap > 0.4


def test_every_output_is_written_and_the_waterfall_adds_up(
    sampled: Sampled, tmp_path: Path
) -> None:
    paths = {name: tmp_path / name for name in ("llvm", "fdata", "counts", "preaggregated")}
    outputs = tuple(output(name, path) for name, path in paths.items())
    done = converted(sampled(5_000), outputs=outputs)
    assert set(done.written) == set(paths.values())
    check(done.tallies, steps())
    assert done.tallies["instructions_sampled"] == 5_000
    assert any("inferred from 5,000 samples" in note for note in done.notes)
    assert not any("llvm-profgen asks" in note for note in done.notes)


def test_saved_counts_are_taken_as_they_are(sampled: Sampled, tmp_path: Path) -> None:
    done = converted(sampled(2_000), outputs=(output("counts", tmp_path / "saved"),))
    again = convert(ConvertOptions((tmp_path / "saved",), PIE))
    assert (again.counts.count == done.counts.count).all()
    assert again.tallies["instructions_sampled"] == 2_000


def test_the_same_samples_give_the_same_bytes(sampled: Sampled, tmp_path: Path) -> None:
    written = []
    for name in ("a", "b"):
        converted(sampled(2_000), outputs=(output("fdata", tmp_path / name),))
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]


def test_too_few_samples_are_refused_but_by_force(sampled: Sampled, tmp_path: Path) -> None:
    path, outputs = sampled(900), (output("fdata", tmp_path / "fdata"),)
    with pytest.raises(IncompleteError, match="900 samples are too few") as refused:
        converted(path, outputs=outputs)
    assert "--force" in (refused.value.cure or "")
    assert len(converted(path, outputs=outputs, force=True).counts) > 0


def test_samples_that_are_all_elsewhere_are_an_empty_profile(tmp_path: Path) -> None:
    path = tmp_path / "samples.preagg"
    path.write_text("E cycles\nS 7f0012345678 5000\n")
    with pytest.raises(EmptyProfileError, match="in this image") as refused:
        converted(path)
    assert "libraries" in (refused.value.cure or "")


def test_without_the_flag_the_cure_names_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "plain.txt"
    path.write_text("interp 10 1.000100: 1 cycles:u: 22a8da main+0x1 (/elsewhere/interp.pie)\n")
    code = main(["convert", str(path), "--binary", str(PIE), "--fdata", str(tmp_path / "x")])
    assert code == 2
    assert "--no-lbr" in capsys.readouterr().err


def test_contexts_need_branches(sampled: Sampled, tmp_path: Path) -> None:
    wanted = output("llvm", tmp_path / "x", contexts="nested")
    with pytest.raises(IncompleteError, match="no call stacks"):
        converted(sampled(2_000), outputs=(wanted,))


@pytest.mark.parametrize(
    ("precise", "words"),
    [(0, "behind the one that counted"), (1, "the instruction behind"), (2, "were asked to be"),
     (3, "samples are of the instruction")],
)  # fmt: skip
def test_the_precision_of_an_event_is_said(precise: int, words: str) -> None:
    events = (EventInfo("cycles:u", precise_ip=precise), EventInfo("silent"))
    (note,) = precision_notes(SourceInfo("p", "f", Addresses.RUNTIME, events))
    assert words in note
    assert f"cycles:u had precise_ip {precise}" in note


STATIC_PROGRAM = Program.open(STATIC)


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_one_sample_is_too_thin(tmp_path: Path) -> None:
    start = int(Program.open(PIE).functions.start[5])
    path = written(tmp_path / "one", f"E cycles\nS {start:x} 1\n")
    with pytest.raises(IncompleteError, match="1 sample is too few") as refused:
        converted(path, outputs=(output("fdata", tmp_path / "fdata"),))
    assert "a longer run" in (refused.value.cure or "")


SAMPLE = "interp 10 1.{:06d}:          1 {}:  {:x} f+0x0 ({})\n"


@pytest.mark.parametrize("as_text", [True, False])
def test_an_event_that_counts_nothing_in_user_space_is_said(tmp_path: Path, as_text: bool) -> None:
    at = 0xFFFFFFFF81000010
    lines = (SAMPLE.format(i, "cycles:k", at, "[kernel.kallsyms]") for i in range(3000))
    text = "".join(lines) if as_text else f"E cycles:k\nS {at:x} 3000\n"
    with pytest.raises(EmptyProfileError, match="in this image") as refused:
        converted(written(tmp_path / "kernel", text))
    assert "counts nothing in user space: record one that does" in (refused.value.cure or "")
    assert refused.value.tallies["instructions_in_image/in_kernel"] == 3000


def test_samples_in_libraries_alone_are_said(tmp_path: Path) -> None:
    at, library = 0x7F0000001010, "/usr/lib/libc.so.6"
    text = "".join(SAMPLE.format(i, "cycles:u", at, library) for i in range(3000))
    with pytest.raises(EmptyProfileError, match="in this image") as refused:
        converted(written(tmp_path / "libraries.txt", text))
    assert "libraries" in (refused.value.cure or "")
    assert refused.value.tallies["instructions_in_image/elsewhere"] == 3000
    assert refused.value.tallies["instructions_in_image/in_kernel"] == 0


def test_call_chains_alone_count_by_their_innermost_frame(tmp_path: Path) -> None:
    start = int(STATIC_PROGRAM.functions.start[5])
    header, frame = (
        "interp 10 1.000100:          1 cycles:u: \n",
        "\t{:16x} f+0x0 (/elsewhere/interp.static)\n",
    )
    text = (header + frame.format(start) + frame.format(start + 64) + "\n") * 3
    path = written(tmp_path / "chains.txt", text)
    done = convert(ConvertOptions((path,), STATIC, no_lbr=True, force=True))
    assert done.tallies["instructions_sampled"] == 3


def test_samples_that_skid_off_the_code_are_counted_as_lost(tmp_path: Path) -> None:
    program = Program.open(PIE)
    code = program.instructions_for(program.functions.start[:20])
    long = int(code.address[code.size > 3][0])
    path = written(tmp_path / "page", f"E cycles\nS {long:x} 3000\nS {long + 1:x} 7\n")
    done = converted(path)
    assert done.tallies["instructions_sampled/no_instruction"] == 7
    check(done.tallies, steps())


def test_samples_that_skid_to_the_page_behind_the_code_are_counted_and_the_cure_says_so(
    tmp_path: Path,
) -> None:
    program = Program.open(PIE)
    last = max(end for _, end in code_ranges(program.image).pairs())
    start = int(program.functions.start[5])
    text = f"E cycles\nS {start:x} 3000\nS {last:x} 7\nS {last + 0x1000:x} 2\n"
    done = converted(written(tmp_path / "page", text))
    check(done.tallies, steps())
    lost = [
        (reason.cure, count)
        for row in rows(done.tallies, steps())
        for reason, count in row.losses
        if row.step.key.startswith("instructions")
    ]
    assert sum(count for _, count in lost) == 9
    assert any("hypervisor" in cure for cure, _ in lost)
