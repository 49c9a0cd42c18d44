"""From counted instructions to an LLVM sample profile, with LLVM's own definitions.

What `llvm-profgen` computes (LLVM: tools/llvm-profgen/ProfileGenerator.cpp), in arrays:

* A *context* is a function, or a function inlined at a location of another context.
* Each instruction adds its count, times its size in bytes, to the total of every context that
  it was inlined through.
* A location (line minus the function's first line, and base discriminator) of a context has the
  largest count among its instructions, times the duplication factor of each.
* Instructions of a function that ran are listed even where they did not: zero says "cold".
* A branch to a function's entry is a call: a target at the branch's location, and head samples
  of the callee.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lbr2pgo.counts import Bools
from lbr2pgo.entry_calls import EXTERNAL, Calls, calls_to_entries
from lbr2pgo.profiles.discriminators import base_discriminator, duplication_factor
from lbr2pgo.profiles.sample_profile import LARGEST_LINE, FunctionSamples, SampleProfile
from lbr2pgo.program.debug_info import DebugInfo, DwarfFunctions, Frames
from lbr2pgo.program.program import Program
from lbr2pgo.replay import Flow
from lbr2pgo.stacks import I64, U64

# Compilers emit several functions of these names, whose profiles would be mixed up
# (LLVM: ProfileGeneratorBase::filterAmbiguousProfile).
_AMBIGUOUS_PREFIXES = ("__cxx_global_var_init", "__tls_init")
_FS_DISCRIMINATOR_MARK = "__llvm_fs_discriminator__"


def sample_profile(
    flow: Flow, program: Program, debug: DebugInfo, *, as_llvm: bool = False
) -> tuple[SampleProfile, Bools]:
    """The sample profile of a replayed recording.

    Also returns, for each fall-through of `flow.judged`, whether its code has source locations.
    With `as_llvm`, calls from outside the image are made at address EXTERNAL.
    """
    functions = debug.functions_for(_starts(flow))
    calls = calls_to_entries(flow, program, functions, as_llvm=as_llvm)
    code = _code(flow, program, functions, calls)
    is_fs = uses_fs_discriminators(program)
    places = _places(debug.frames(code.address), is_fs=is_fs)
    contexts = _contexts(places)
    profile = SampleProfile(is_fs=is_fs)
    _fill(profile, code, places, contexts, calls)
    return profile, _located(flow, code, places)


def _starts(flow: Flow) -> U64:
    """Where a function may have begun to run: starts of valid runs, and targets of branches."""
    runs = flow.judged.runs.start[flow.judged.valid]
    return np.unique(np.concatenate((runs, flow.branches.to[flow.branch_to >= 0])))


def uses_fs_discriminators(program: Program) -> bool:
    """Whether the binary's discriminators are flow-sensitive, which are not packed."""
    return program.symbols.by_name(_FS_DISCRIMINATOR_MARK) is not None


@dataclass(frozen=True, slots=True)
class _Code:
    """Instructions that the profile speaks of, ordered by address; columns of equal length."""

    address: U64
    weight: U64
    """Count times bytes of the instruction."""
    count: U64
    is_body: Bools
    """False for instructions that are only the place of a call."""


def _code(flow: Flow, program: Program, functions: DwarfFunctions, calls: Calls) -> _Code:
    ran = functions.containing(np.unique(flow.judged.runs.start[flow.judged.valid]))
    owners = np.unique(functions.function[ran[ran >= 0]])
    ranges = np.flatnonzero(np.isin(functions.function, owners))
    starts, ends = functions.range_start[ranges], functions.range_end[ranges]
    sources = calls.source[calls.has_source]
    named = np.concatenate((flow.instructions.address[flow.executed > 0], starts, sources))
    table = program.instructions_for(np.unique(named))
    count = np.zeros(len(table), dtype=np.uint64)
    place = table.index_of(flow.instructions.address)
    count[place[place >= 0]] = flow.executed[place >= 0]
    is_body = (count > 0) | _in_ranges(table.address, starts, ends)
    is_call = np.isin(table.address, sources)
    rows = is_body | is_call
    weight = count * table.size
    code = _Code(table.address[rows], weight[rows], count[rows], is_body[rows])
    return _with_external(code) if EXTERNAL in sources else code


def _with_external(code: _Code) -> _Code:
    """The same with a place for calls from outside, below all code."""
    return _Code(
        address=np.append(EXTERNAL, code.address),
        weight=np.append(np.uint64(0), code.weight),
        count=np.append(np.uint64(0), code.count),
        is_body=np.append(False, code.is_body),
    )


def _in_ranges(addresses: U64, starts: U64, ends: U64) -> Bools:
    """Which ascending addresses lie in any of the half-open ranges, which may overlap."""
    depth = np.zeros(len(addresses) + 1, dtype=np.int64)
    np.add.at(depth, np.searchsorted(addresses, starts), 1)
    np.add.at(depth, np.searchsorted(addresses, ends), -1)
    return np.cumsum(depth[:-1]) > 0


@dataclass(frozen=True, slots=True)
class _Places:
    """Frames of every instruction, outermost first, with LLVM's locations (see `Frames`)."""

    first: I64
    """Number of each instruction's outermost frame."""
    depth: I64
    """How many frames each instruction has; 0 without debug information."""
    function: I64
    line: I64
    discriminator: I64
    factor: U64
    names: tuple[str, ...]

    @property
    def leaf(self) -> I64:
        """Number of each instruction's innermost frame; meaningless at depth 0."""
        return self.first + self.depth - 1


def _places(frames: Frames, *, is_fs: bool) -> _Places:
    words = frames.discriminator
    line = (frames.line.astype(np.int64) - frames.start_line) & LARGEST_LINE
    discriminator = words if is_fs else base_discriminator(words)
    factor = np.ones_like(words) if is_fs else duplication_factor(words)
    return _Places(
        first=frames.offsets[:-1],
        depth=_named_depth(frames),
        function=frames.function.astype(np.int64),
        line=line,
        discriminator=discriminator.astype(np.int64),
        factor=factor.astype(np.uint64),
        names=frames.names,
    )


def _named_depth(frames: Frames) -> I64:
    """Frames of each address from the outermost down to the last one before a nameless one."""
    depth = np.diff(frames.offsets)
    is_nameless = np.array([not name for name in frames.names], dtype=np.bool_)
    if not is_nameless.any() or not len(frames.function):
        return depth
    number = np.arange(len(frames.function))
    owner = np.repeat(np.arange(len(depth)), depth)
    inner = number - frames.offsets[owner]
    cut = np.where(is_nameless[frames.function], inner, depth[owner])
    np.minimum.at(depth, owner, cut)
    return depth


@dataclass(frozen=True, slots=True)
class _Contexts:
    """A forest of contexts, parents before children; columns of equal length.

    `levels[k]` gives, for each instruction deeper than k, its context at depth k.
    """

    parent: I64
    """-1 for functions that stand alone."""
    line: I64
    discriminator: I64
    """Location in the parent at which it was inlined."""
    function: I64
    levels: tuple[tuple[I64, I64], ...]
    """Per depth: instruction numbers, and the context of each."""


def _contexts(places: _Places) -> _Contexts:
    """Number the contexts, depth by depth: each is told apart by its parent and call."""
    columns: list[I64] = []
    levels: list[tuple[I64, I64]] = []
    current = np.full(len(places.depth), -1, dtype=np.int64)
    size = 0
    for depth in range(int(places.depth.max(initial=0))):
        rows = np.flatnonzero(places.depth > depth)
        frame = places.first[rows] + depth
        call = frame - 1 if depth else frame
        key = np.stack(
            (
                current[rows],
                places.line[call] * (depth > 0),
                places.discriminator[call] * (depth > 0),
                places.function[frame],
            )
        )
        unique, inverse = _distinct(key)
        current[rows] = size + inverse
        size += unique.shape[1]
        columns.append(unique)
        levels.append((rows, current[rows]))
    table = np.concatenate([np.empty((4, 0), np.int64), *columns], axis=1)
    parent, line, discriminator, function = table
    return _Contexts(parent, line, discriminator, function, tuple(levels))


def _distinct(key: I64) -> tuple[I64, I64]:
    """As `np.unique(key, axis=1, return_inverse=True)`, which compares columns as bytes: slowly."""
    order = np.lexsort(key[::-1])
    ordered = key[:, order]
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    inverse = np.empty(len(order), dtype=np.int64)
    inverse[order] = np.cumsum(is_first) - 1
    return ordered[:, is_first], inverse


def _fill(
    profile: SampleProfile, code: _Code, places: _Places, contexts: _Contexts, calls: Calls
) -> None:
    samples = _empty_samples(profile, places, contexts)
    _add_totals(samples, code, contexts)
    leaf = _leaf_contexts(places, contexts)
    _add_bodies(samples, code, places, leaf)
    _add_calls(profile, samples, code, places, leaf, calls)
    for function in profile.functions.values():
        _raise_to_calls(function)
    _drop_ambiguous(profile)


def _empty_samples(
    profile: SampleProfile, places: _Places, contexts: _Contexts
) -> list[FunctionSamples]:
    """One profile a context, hung into its parent."""
    samples: list[FunctionSamples] = []
    for parent, line, discriminator, function in zip(
        contexts.parent.tolist(),
        contexts.line.tolist(),
        contexts.discriminator.tolist(),
        contexts.function.tolist(),
        strict=True,
    ):
        name = places.names[function]
        if parent < 0:
            samples.append(profile.function(name))
        else:
            samples.append(samples[parent].callee((line, discriminator), name))
    return samples


def _add_totals(samples: Sequence[FunctionSamples], code: _Code, contexts: _Contexts) -> None:
    totals = np.zeros(len(samples), dtype=np.uint64)
    for rows, context in contexts.levels:
        np.add.at(totals, context, code.weight[rows])
    for function, total in zip(samples, totals.tolist(), strict=True):
        function.total += total


def _leaf_contexts(places: _Places, contexts: _Contexts) -> I64:
    """The innermost context of each instruction, -1 without debug information."""
    leaf = np.full(len(places.depth), -1, dtype=np.int64)
    for rows, context in contexts.levels:
        leaf[rows] = context
    return leaf


def _add_bodies(
    samples: Sequence[FunctionSamples], code: _Code, places: _Places, leaf: I64
) -> None:
    rows = np.flatnonzero(code.is_body & (leaf >= 0))
    frame = places.leaf[rows]
    keys = (leaf[rows], places.line[frame], places.discriminator[frame])
    count = code.count[rows] * places.factor[frame]
    order = np.lexsort((count, *reversed(keys)))
    columns = [column[order] for column in keys]
    is_last = np.ones(len(order), dtype=np.bool_)
    is_last[:-1] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    for context, line, discriminator, largest in zip(
        *(column[is_last].tolist() for column in columns),
        count[order][is_last].tolist(),
        strict=True,
    ):
        samples[context].body[line, discriminator] = largest


def _add_calls(
    profile: SampleProfile,
    samples: Sequence[FunctionSamples],
    code: _Code,
    places: _Places,
    leaf: I64,
    calls: Calls,
) -> None:
    for callee, count in zip(calls.callee.tolist(), calls.count.tolist(), strict=True):
        profile.function(calls.names[callee]).head += count
    inside = np.flatnonzero(calls.has_source)
    row = np.searchsorted(code.address, calls.source[inside])
    known = leaf[row] >= 0
    inside, row = inside[known], row[known]
    frame = places.leaf[row]
    for context, line, discriminator, callee, count in zip(
        leaf[row].tolist(),
        places.line[frame].tolist(),
        places.discriminator[frame].tolist(),
        calls.callee[inside].tolist(),
        calls.count[inside].tolist(),
        strict=True,
    ):
        location = (line, discriminator)
        samples[context].body.setdefault(location, 0)
        samples[context].add_call(location, calls.names[callee], count)


def _raise_to_calls(function: FunctionSamples) -> None:
    """A location ran at least as often as it called (LLVM: updateCallsiteSamples).

    As in LLVM, copies that were inlined are left as they are.
    """
    for location, targets in function.call_targets.items():
        function.body[location] = max(function.body.get(location, 0), sum(targets.values()))


def _drop_ambiguous(profile: SampleProfile) -> None:
    for key in [key for key in profile.functions if _is_ambiguous(key)]:
        del profile.functions[key]
    for function in profile.functions.values():
        _drop_ambiguous_inlined(function)


def _drop_ambiguous_inlined(function: FunctionSamples) -> None:
    for callees in function.callsites.values():
        for name in [name for name in callees if _is_ambiguous(name)]:
            del callees[name]
        for callee in callees.values():
            _drop_ambiguous_inlined(callee)


def _is_ambiguous(key: object) -> bool:
    return isinstance(key, str) and key.startswith(_AMBIGUOUS_PREFIXES)


def _located(flow: Flow, code: _Code, places: _Places) -> Bools:
    """Which runs cover at least one instruction with a source location."""
    located = np.isin(flow.instructions.address, code.address[places.depth > 0])
    before = np.concatenate(([0], np.cumsum(located)))
    judged = flow.judged
    known = judged.valid
    found = np.zeros(len(known), dtype=np.bool_)
    found[known] = before[judged.last[known] + 1] > before[judged.first[known]]
    return found


def symbol_list(debug: DebugInfo) -> frozenset[str]:
    """Names of all functions in the binary, which tell a cold function from a new one."""
    return frozenset(debug.functions().names)
