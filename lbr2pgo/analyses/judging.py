"""A recording judged by the exact counts of the same run, from files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lbr2pgo.analyses.accuracy import Accuracy, EdgeCounts, exact_edges, measure
from lbr2pgo.analyses.accuracy_curves import InstructionCurve, Point, depth_points
from lbr2pgo.conversion import ConvertOptions, read
from lbr2pgo.model.exact_counts import ExactCounts
from lbr2pgo.program.program import Program
from lbr2pgo.replay.recorded_program import program_of
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import StackSource
from lbr2pgo.sources.exact_counts import image_of
from lbr2pgo.support.addresses import placed_addresses
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.headway import Progress
from lbr2pgo.support.timings import Timings


def judge(
    options: ConvertOptions,
    exact: Path,
    progress: Progress | None = None,
    timings: Timings | None = None,
) -> Accuracy:
    """What `options` read and infer, beside the exact counts of a file; `binary` is the program.

    Raises InputError for what can't be read, and for exact counts of another program.
    """
    assert options.binary is not None, "what was counted exactly is known"
    timings = timings or Timings()
    found = read(replace(options, force=True), progress, timings)
    with timings.stage("measure"):
        measured = measure(found.flow, exact_edges_of(exact, found.program), found.program)
        return replace(measured, notes=found.notes)


def curves(recording: Path, exact: Path, binary: Path) -> list[Point]:
    """What shorter stacks, and samples of instructions drawn from the exact counts, come to.

    Raises InputError as `judge`, and for an input that holds no samples.
    """
    source = open_source(recording)
    if not isinstance(source, StackSource):
        raise InputError(
            "holds no samples",
            where=str(recording),
            cure="Give the recording, or leave out --curves.",
        )
    recorded, _ = program_of(binary, [source])
    program = Program.open(recorded)
    edges = exact_edges_of(exact, program)
    instructions = InstructionCurve.of(edges, program)
    return [*depth_points(source, edges, program), *instructions.points()]


def exact_edges_of(path: Path, program: Program) -> EdgeCounts:
    """The edges of the program that an exact file counts."""
    exact = ExactCounts.load(path)
    image = image_of(exact, program.image.layout, str(path))
    return exact_edges(
        placed_addresses(exact.from_),
        placed_addresses(exact.to),
        exact.from_image == image,
        exact.to_image == image,
        exact.count,
    )
