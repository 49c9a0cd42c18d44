"""What `import lbr2pgo` offers first: each task in one call, with paths in any form.

What these take apart, `lbr2pgo.count`, `lbr2pgo.Program` and their like offer step by step.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from lbr2pgo.conversion import Conversion, ConvertOptions
from lbr2pgo.conversion import convert as _convert
from lbr2pgo.counting.chosen_samples import SampleChoice
from lbr2pgo.counting.count import CountingOptions
from lbr2pgo.model.compat import Compat
from lbr2pgo.profiles.base import Output
from lbr2pgo.profiles.registry import output
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import Source
from lbr2pgo.support.file_names import expanded
from lbr2pgo.support.output import PathLike

if TYPE_CHECKING:
    import networkx as nx

    from lbr2pgo.analyses.evidence import Evidence
    from lbr2pgo.reports.model import Report

Paths = PathLike | Iterable[PathLike]
"""One path or several, each a string or an `os.PathLike`."""


class Reading(TypedDict, total=False):
    """How samples are chosen and judged, as by the command line's options of these names."""

    event: str | None
    pids: Iterable[int]
    tids: Iterable[int]
    comms: Iterable[str]
    cpus: Iterable[int]
    time: tuple[float, float | None]
    phase: int
    build_id: str | None
    strict: bool
    compat: Iterable[str]


def convert(
    profiles: Paths,
    binary: PathLike | None = None,
    *,
    outputs: Iterable[Output] = (),
    llvm: PathLike | None = None,
    fdata: PathLike | None = None,
    **reading: Unpack[Reading],
) -> Conversion:
    """Convert recordings of one program; `binary` is the one that they name, if it is left out.

    `llvm` and `fdata` are where a sample profile and fdata go; `outputs` are others, or such with
    options, made by `lbr2pgo.output`. Raises TypeError that names the argument for one of a wrong
    type, and else what `Lbr2pgoError` stands for.
    """
    named = {"llvm": llvm, "fdata": fdata}
    asked = (output(name, _path(path, name)) for name, path in named.items() if path is not None)
    return _convert(
        ConvertOptions(**_inputs(profiles, binary, reading), outputs=(*asked, *outputs))
    )


def report(
    profiles: Paths,
    binary: Paths | None = None,
    *,
    sysroots: Paths = (),
    libraries: bool = True,
    only: str | Iterable[str] = (),
    function: str | None = None,
    top: int | None = 20,
    **reading: Unpack[Reading],
) -> Report:
    """Analyse recordings of one process, as `lbr2pgo report` does; raises as `convert`.

    `binary` names the program, and libraries if need be; others that it had mapped are taken where
    they are found, in these `sysroots` or on this machine, unless `libraries` is false.
    `only` names analyses, `function` a function to show alone, and `top` is how many rows a table
    has at most (None: all).
    """
    from lbr2pgo.reports.build import ReportOptions, make_report
    from lbr2pgo.reports.notebook import NotebookReport

    names = (only,) if isinstance(only, str) else tuple(only)
    inputs = _of_process(profiles, binary, sysroots, libraries, reading)
    options = ReportOptions(**inputs, only=names, function=function, top=top)
    return NotebookReport.of(make_report(options))


def flow_graph(
    profiles: Paths,
    binary: Paths | None,
    function: str,
    *,
    sysroots: Paths = (),
    libraries: bool = True,
    **reading: Unpack[Reading],
) -> nx.DiGraph:
    """Give a function's control-flow graph with what the recordings tell of it.

    Arguments are those of `report`; `function` is a linkage or C++ name, or an address (`0x…`).
    Nodes are blocks, by their address in the file: `address`, `end` (the first one behind),
    `is_entry`, `lines` and `instructions` (tuples of texts), `count` (executions seen), and
    `cycles` (trimmed mean of the times when it alone ran between two taken branches).
    Edges have `kind` (`fallthrough`, `taken`, `jump`, `indirect`; `fallthrough+taken` where a
    branch leads to the block behind it), `count`, `mispredicted`, and `probability` of being gone
    from the source's end, with its interval, `probability_low` and `probability_high`.
    The graph has `function`, `file` and `notes`, which say what can't be known: that is left out.

    Raises as `convert`, and InputError for an unknown function.
    """
    from lbr2pgo.analyses import function_view
    from lbr2pgo.analyses.flow_network import flow_network
    from lbr2pgo.program.code.named_functions import find_function

    inputs = _of_process(profiles, binary, sysroots, libraries, reading)
    evidence = _evidence(inputs, function_view.NAME)
    return flow_network(evidence, find_function(evidence.program, function))


def call_graph(
    profiles: Paths,
    binary: Paths | None = None,
    *,
    sysroots: Paths = (),
    libraries: bool = True,
    **reading: Unpack[Reading],
) -> nx.DiGraph:
    """Give the functions that ran or were called, and who called whom.

    Arguments are those of `report`. Nodes are functions, by name; where several share one, file
    and address are part of it, and what lies in a file outside stands for that in brackets.
    They have `function`, `file`, `address` and `line`, and the function's own `executed`
    (instructions), `branches` (taken), `mispredicted` and `cycles`. Edges have `count`, how many of
    these were `indirect` and `tail` calls, and `mispredicted`, if some were indirect: of those.
    The graph has `file` and `notes`, which say what can't be known: that is left out.

    Raises as `convert`.
    """
    from lbr2pgo.analyses import call_edges, hot_functions
    from lbr2pgo.analyses.call_network import call_network

    inputs = _of_process(profiles, binary, sysroots, libraries, reading)
    return call_network(_evidence(inputs, call_edges.NAME, hot_functions.NAME))


def open(path: PathLike) -> Source:
    """Open a recording of any readable format.

    Of a `StackSource`, what `batches()` gives can be gone through as often as wanted: each time
    is a new reading. Raises InputError where there is nothing that can be read.
    """
    return open_source(_path(path, "path"))


def _evidence(inputs: dict[str, Any], *analyses: str) -> Evidence:
    """What recordings tell these analyses."""
    from lbr2pgo.replay.processes import ProcessInputs
    from lbr2pgo.reports.gather import gather, look_for_analyses
    from lbr2pgo.reports.placed_profiles import read_inputs

    found = read_inputs(ProcessInputs(**inputs), asks=look_for_analyses(analyses))
    found.refuse_nothing()
    return gather(found).evidence


def _of_process(
    profiles: Paths, binary: Paths | None, sysroots: Paths, libraries: bool, reading: Reading
) -> dict[str, Any]:
    from lbr2pgo.program.elf.find import ImagePlaces

    named = () if binary is None else _paths(binary, "binary")
    places = ImagePlaces(_paths(sysroots, "sysroots"))
    return {
        **_inputs(profiles, named[0] if named else None, reading),
        "binaries": named[1:], "libraries": libraries, "places": places,
    }  # fmt: skip


def _inputs(profiles: Paths, binary: PathLike | None, reading: Reading) -> dict[str, Any]:
    found = _paths(profiles, "profiles")
    unknown = reading.keys() - Reading.__annotations__.keys()
    if unknown:
        raise TypeError(f"there is no argument {min(unknown)}")
    choice = SampleChoice(
        tuple(reading.get("pids", ())), tuple(reading.get("tids", ())),
        tuple(reading.get("comms", ())), tuple(reading.get("cpus", ())), _span(reading),
        reading.get("phase"),
    )  # fmt: skip
    counting = CountingOptions(reading.get("event"), choice, reading.get("build_id"))
    return {
        "profiles": expanded(found),
        "binary": None if binary is None else _path(binary, "binary"),
        "counting": counting,
        "strict": reading.get("strict", False),
        "compat": Compat(frozenset(reading.get("compat", ()))),
    }


def _span(reading: Reading) -> tuple[int, int | None] | None:
    if "time" not in reading:
        return None
    start, end = reading["time"]
    return round(start * 1e9), None if end is None else round(end * 1e9)


def _paths(values: object, argument: str) -> tuple[Path, ...]:
    several = [values] if isinstance(values, str | os.PathLike) else values
    if not isinstance(several, Iterable):
        raise TypeError(f"{argument}: a path or paths are needed, not {values!r}")
    return tuple(_path(path, argument) for path in several)


def _path(value: object, argument: str) -> Path:
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{argument}: a path is needed, not {value!r}")
    return Path(value)
