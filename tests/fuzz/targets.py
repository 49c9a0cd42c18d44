"""What each fuzz target does with bytes.

A target gives bytes to one reader as the commands would, and lets every exception but the
product's own out. To add one: write a function, and add a row to `TARGETS`; what the registry of
written profiles lists has its rows already.
"""

from __future__ import annotations

import atexit
import random
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import made_seeds
import numpy as np
import seeds
from builders.containers import members, packed_records
from builders.outputs import usual_forms
from builders.translations import Entry, Piece, note, random_pieces
from seeds import BINARY, RECORDING, Seeds

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.counting.count import count
from lbr2pgo.counting.count_instructions import count_instructions
from lbr2pgo.counting.place import ImageFacts
from lbr2pgo.dumping import profile as written
from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.model.exact_counts import ExactCounts
from lbr2pgo.profiles.base import Form, OutputFormat
from lbr2pgo.profiles.bolt.fdata.fdata_tables import FdataEdges
from lbr2pgo.profiles.bolt.moved import Moved
from lbr2pgo.profiles.registry import formats, output, read_written
from lbr2pgo.program.address_translation import translation_of
from lbr2pgo.program.blocks.binary_functions import BinaryFunctions, discover
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.jit.jit_program import JitProgram
from lbr2pgo.program.jit.jitdump import read_jitdump
from lbr2pgo.program.jit.made_functions import JitFunction
from lbr2pgo.program.jit.made_image import jit_image
from lbr2pgo.program.jit.perf_map import read_perf_map
from lbr2pgo.program.program import Program
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import LineSource, Source, StackSource
from lbr2pgo.support.arrays import U64
from lbr2pgo.support.errors import Lbr2pgoError


@cache
def _folder() -> Path:
    """Where this process keeps the input and what is made of it."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name)


def _file(data: bytes) -> Path:
    path = _folder() / "input"
    path.write_bytes(data)
    return path


@cache
def _program() -> Program:
    return Program.open(BINARY)


def recording(data: bytes) -> None:
    """Any recording: recognise it, read all of it, and count what is of one program."""
    program = _program()
    source: Source = open_source(_file(data))
    if isinstance(source, LineSource):
        source.line_branches()
    if isinstance(source, StackSource):
        source.space_events()
        for _ in source.batches(program.address_of):
            pass
    with suppress(Lbr2pgoError):  # of another program
        count(source, program.image.layout, None, program.address_of)
    source.health()


def samples_of_instructions(data: bytes) -> None:
    """Any recording, for the instructions that its samples interrupted."""
    source = open_source(_file(data))
    count_instructions(source, ImageFacts(_program().image.layout))
    source.health()


def packed_recording(data: bytes) -> None:
    """A recording whose compressed records hold these bytes."""
    recording(packed_records(RECORDING.read_bytes()).replaced(0, data))


def member(data: bytes) -> None:
    """Saved counts one of whose arrays these bytes are, and exact counts; the first tells which."""
    for file, read in ((seeds.saved(), recording), (seeds.exact(), _exact)):
        parts = members(file)
        for number in {data[0] % len(parts.contents)} if data else ():
            with suppress(Lbr2pgoError):
                read(parts.replaced(number, data[1:]))


def _exact(data: bytes) -> None:
    ExactCounts.load(_file(data))


def _member_seeds() -> list[bytes]:
    contents = [*members(seeds.saved()).contents, *members(seeds.exact()).contents]
    return [bytes([i]) + content for i, content in enumerate(contents)]


def profile(data: bytes) -> None:
    """Any written profile: read it, and write it as text."""
    for _ in written.lines(_file(data)):
        pass


def placed(data: bytes) -> None:
    """A written profile as counts of a program, if it can be, and added to itself."""
    path = _file(data)
    profile = read_written(path)
    if profile is None or profile.reader.merging is None:
        return
    if profile.reader.has_counts:
        profile.beside(_program()).counts(_program())
    profile.reader.merging.add([(profile.content, 1), (profile.content, 2)])


def _read_dwarf(image: Image) -> None:
    """Every function's lines, and the frames of some addresses."""
    debug = DebugInfo.open(image)
    if debug.present:
        debug.functions()
        debug.frames(_addresses())


@cache
def _addresses() -> U64:
    """Where instructions of `BINARY` stand; other programs have code there too."""
    functions = _program().functions
    return _program().instructions_for(functions.start).address


def program(data: bytes) -> None:
    """A program: its lines, and the profiles that counts of some build of it give."""
    path = _file(data)
    _read_dwarf(Image.open(path))
    _convert(_counts(), path)


@cache
def _counts() -> Path:
    path = _folder() / "given counts"
    path.write_bytes(seeds.counts())
    return path


@cache
def _around_dwarf() -> tuple[bytes, int, int]:
    """A program, and where its sections of DWARF (and their relocations) begin and end."""
    image = Image.open(BINARY)
    sections = [each for each in image.sections if ".debug_" in each.name]
    first = min(each.file_offset for each in sections)
    return BINARY.read_bytes(), first, max(each.file_offset + each.size for each in sections)


def dwarf(data: bytes) -> None:
    """A program whose DWARF is replaced: mutants of a whole file seldom get that far."""
    whole, first, end = _around_dwarf()
    damaged = data[: end - first].ljust(end - first, b"\0")
    _read_dwarf(Image.open(_file(whole[:first] + damaged + whole[end:])))


def _dwarf_seeds() -> list[bytes]:
    whole, first, end = _around_dwarf()
    return [whole[first:end]]


def translation(data: bytes) -> None:
    """What BOLT says it moved: the branches and runs of a program in it, told as before."""
    functions, counts = _moved()
    moved = Moved(functions, translation_of(data, "fuzzed"))
    branches, runs = counts.branches(), counts.runs()
    from_, to = functions.containing(branches.from_), functions.containing(branches.to)
    rows = branches.from_, branches.to, branches.mispredicted, branches.count
    moved.before(FdataEdges(from_, rows[0], to, *rows[1:]))
    inside = np.flatnonzero(moved.holds(functions.containing(runs.start)))
    start = runs.start[inside]
    moved.passed(functions.containing(start), start, runs.end[inside], runs.count[inside])


@cache
def _moved() -> tuple[BinaryFunctions, BranchCounts]:
    program = _program()
    functions = discover(program.image, program.symbols)
    return functions, count(open_source(RECORDING), program.image.layout).counts


def _translation_seeds() -> list[bytes]:
    """One that holds every third function, each with blocks in another order."""
    chance, functions = random.Random(1), _moved()[0]
    places = zip(functions.start.tolist()[::3], functions.size.tolist()[::3], strict=True)
    pieces = [
        Piece(start, [Entry(at, chance.randrange(999), at) for at in range(0, size, 7)])
        for start, size in places
    ]
    return [note(pieces), note(random_pieces(chance, 5, 5))]


def replay(data: bytes) -> None:
    """A recording of one program, converted to everything that is written of it."""
    _convert(_file(data), BINARY)


def _convert(recorded: Path, binary: Path) -> None:
    out = _folder()
    usual = (each for each in formats() if not each.forms[0].needs)
    outputs = tuple(output(each.name, out / each.name) for each in usual)
    convert(ConvertOptions((recorded,), binary, outputs=outputs))


def jitdump(data: bytes) -> None:
    """Code that a process made: its symbols, instructions and lines."""
    _made(list(read_jitdump(_file(data)).functions))


def perf_map(data: bytes) -> None:
    """The same of names alone."""
    _made(read_perf_map(_file(data))[0])


def _made(functions: list[JitFunction]) -> None:
    if functions:
        made = JitProgram(jit_image("jit-10.dump", "x86-64", functions))
        starts = made.functions.start[:64]
        made.instructions_for(starts)
        made.debug_info().lines(starts)


def foreign(data: bytes) -> None:
    """A program for another system, or a part of a kernel."""
    opened = Program.open(_file(data))
    opened.instructions_for(opened.functions.start)
    _read_dwarf(opened.image)


def split(data: bytes) -> None:
    """A program beside the file that its debug information was split off to."""
    found = made_seeds.split_program()
    if found is not None:
        program, unit = found
        unit.write_bytes(data)
        _read_dwarf(Image.open(program))


@dataclass(frozen=True, slots=True)
class Target:
    """One format: how it is read, and files of it."""

    run: Callable[[bytes], None]
    seeds: Seeds
    longest: int = 1 << 16
    """Bytes of the largest input worth trying."""

    def __call__(self, data: bytes) -> None:
        """Read bytes; the product's own errors are an answer."""
        with suppress(Lbr2pgoError):
            self.run(data)


_MORE_SEEDS = {
    "preaggregated": seeds.text(seeds.EDGES),
    "unsymbolized": seeds.text(seeds.RANGES),
    "sample_text": seeds.all_of(seeds.text(seeds.SAMPLES), seeds.files("*/*.expected.prof")),
}
"""Of what is written, beside what a conversion writes."""


def _written(form: OutputFormat, each: Form) -> Target:
    """What is written is read back, as a written profile or as a recording."""
    more = _MORE_SEEDS.get(each.key, lambda: ())
    read = profile if form.readers() else recording
    return Target(read, seeds.all_of(more, seeds.written(each.key)))


TARGETS = {
    "perf_data": Target(
        recording, seeds.files("recordings/*.data", "quipper/*.data", "quipper/*[4x]"), 1 << 18
    ),
    "perf_script": Target(
        recording,
        seeds.all_of(seeds.text(seeds.STACKS, seeds.SYMBOLS), seeds.files("*/*perfscript")),
    ),
    "other_text": Target(recording, seeds.text(seeds.RANGES, seeds.RECORDS)),
    "uprof": Target(recording, seeds.text(seeds.UPROF)),
    "processor_samples": Target(samples_of_instructions, made_seeds.processor_samples),
    "registers": Target(
        recording, seeds.text(seeds.INTEL, seeds.INTEL_JSON, seeds.AMD, seeds.ARM)
    ),
    "packed_records": Target(
        packed_recording, lambda: packed_records(RECORDING.read_bytes()).contents, 1 << 18
    ),
    "members": Target(member, _member_seeds),
    "program": Target(
        program, seeds.files("x86-64/*.pie", "aarch64/*.pie", "llvm-profgen/*.perfbin"), 1 << 18
    ),
    "dwarf": Target(dwarf, _dwarf_seeds),
    "split": Target(split, made_seeds.split_units),
    "module": Target(foreign, made_seeds.modules, 1 << 18),
    "pe": Target(foreign, made_seeds.windows_programs, 1 << 18),
    "jitdump": Target(jitdump, made_seeds.jitdumps),
    "perf_map": Target(perf_map, made_seeds.perf_maps),
    "simpleperf": Target(recording, made_seeds.simpleperf),
    "replay": Target(
        replay, seeds.all_of(seeds.written("preaggregated"), seeds.files("recordings/x86*.data")),
        1 << 18,
    ),
    "translation": Target(translation, _translation_seeds),
    "clusters": Target(profile, seeds.text(seeds.CLUSTERS, seeds.OLDER_CLUSTERS)),
    "placed": Target(placed, seeds.all_of(seeds.text(seeds.YAML), seeds.written("fdata"))),
    **{each.key: _written(form, each) for form, each in usual_forms()},
}  # fmt: skip
