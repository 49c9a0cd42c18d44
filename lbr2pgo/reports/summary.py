"""The answers at first sight: a few sentences, drawn from what the tables hold.

What can't be known has no sentence. Names in them are data, as everywhere in a report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lbr2pgo.analyses import hot_functions, mispredictions, phases
from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.gains import Gain, GainKind, gains
from lbr2pgo.analyses.table import Table, Value, percentage
from lbr2pgo.support.addresses import placed_array
from lbr2pgo.support.counted import counted, listed
from lbr2pgo.support.dataclass import dataclass

QUALITY = "quality"
"""What is about the recording itself."""
_WORTH = 0.001
"""What part of all taken branches must be saved for a sentence on where."""
_FEW_SAMPLES = 1000
_GOOD, _FAIR = 0.98, 0.9
"""Shares of fall-throughs that fit the code: damage and wrong binaries make for less."""
_PHASES = 3
"""So many are told of."""
_SURE = 30
"""Mispredictions of a branch from which on its rate is worth a sentence."""

_WAYS = {
    GainKind.LAYOUT: "turning forward branches round that mostly jump would save {share} of "
    "{branches}",
    GainKind.COLD_CODE: "moving code away that never ran, out of hot paths that jump over it, "
    "would save {share} of {branches}",
    GainKind.PROMOTION: "calling the hottest target of each indirect call directly would cover "
    "{share} of {branches}",
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """One answer, and what it is about: a placed address, a table's name, or nothing."""

    text: str
    place: int | str | None = None


def summary(
    evidence: Evidence,
    tables: Sequence[Table],
    tallies: Mapping[str, int],
    details: Mapping[str, str],
    name: str,
) -> tuple[Sentence, ...]:
    """What ran, how good the recording is, and what is hottest, worst, and to be gained."""
    by_name = {table.name: table for table in tables}
    sentences = (
        *_what_ran(evidence, tallies, details, name),
        *_quality(evidence, tallies),
        *_phases(by_name.get(phases.NAME)),
        *_hottest(by_name.get(hot_functions.NAME)),
        *_worst(by_name.get(mispredictions.NAME)),
        *_largest(evidence, evidence.once(gains)),
    )
    return tuple(sentences)


def _what_ran(
    evidence: Evidence, tallies: Mapping[str, int], details: Mapping[str, str], name: str
) -> Iterator[Sentence]:
    samples, branches = tallies.get("samples_mapped"), tallies.get("branches_in_image")
    event = f" of {details['event']}" if "event" in details else ""
    processor = details.get("cpu description") or details.get("cpuid", "")
    where = f", on {processor}" if processor else ""
    if evidence.limits.is_simulated:
        where = ", under the software LBR"
    if samples is not None and branches is not None:
        yield Sentence(
            f"{name} ran: {counted(samples, 'sample')}{event} with "
            f"{counted(branches, 'taken branch')} in it{where}.",
            QUALITY,
        )
    else:
        yield Sentence(f"{name} ran: the input holds counts, not samples.", QUALITY)


def _quality(evidence: Evidence, tallies: Mapping[str, int]) -> Iterator[Sentence]:
    in_image, valid = tallies.get("runs_in_image"), tallies.get("runs_valid")
    if not in_image or valid is None:
        notes = evidence.run_notes()
        yield from (Sentence(note, QUALITY) for note in notes)
        return
    fit = valid / in_image
    word = "good" if fit >= _GOOD else "fair" if fit >= _FAIR else "poor"
    few = tallies.get("samples_mapped", _FEW_SAMPLES) < _FEW_SAMPLES
    yield Sentence(
        f"The recording is {'short, and else ' if few else ''}{word}: "
        f"{percentage(fit)} of {counted(in_image, 'fall-through')} fit the code.",
        QUALITY,
    )


def _phases(table: Table | None) -> Iterator[Sentence]:
    if table is None or table.found < 2:
        return
    rows = [*table.records()][:_PHASES]
    told = [f"{row['functions']} ({percentage(_number(row['share']) or 0)})" for row in rows]
    more = ", and so on" if table.found > _PHASES else ""
    yield Sentence(
        f"It ran in {table.found} phases, each with other functions: {', then '.join(told)}{more}; "
        "--phase N takes one alone.",
        phases.NAME,
    )


def _hottest(table: Table | None) -> Iterator[Sentence]:
    if not table:
        return
    row = next(table.records())
    parts = (("instructions_share", "instructions"), ("branches_share", "taken branches"),
             ("cycles_share", "cycles"))  # fmt: skip
    shares = [f"{percentage(v)} of the {what}" for key, what in parts if (v := _number(row[key]))]
    yield Sentence(
        f"The hottest function is {row['function']}{_at(row['line'])}, with {listed(shares)}.",
        _address(table),
    )


def _worst(table: Table | None) -> Iterator[Sentence]:
    if not table:
        return
    row = next(table.records())
    missed, rate = row["mispredicted"], _number(row["rate"])
    if isinstance(missed, int) and missed >= _SURE and rate is not None:
        low, high = _number(row["rate_low"]) or 0, _number(row["rate_high"]) or 0
        yield Sentence(
            f"The costliest branch to predict stands in {row['function']}{_at(row['line'])}: "
            f"{percentage(rate)} of the times that it was taken were mispredicted "
            f"({percentage(low)} to {percentage(high)}), {missed:,} in all.",
            _address(table),
        )


def _largest(evidence: Evidence, found: Sequence[Gain]) -> Iterator[Sentence]:
    if not found:
        return
    first, *others = found
    branches = "the branches kept" if evidence.limits.is_filtered else "all taken branches"
    if first.share < _WORTH:
        yield Sentence(
            "There is next to nothing to gain by layout or promotion: less than "
            f"{percentage(_WORTH)} of {branches}.",
            first.largest,
        )
        return
    place = evidence.names.of(placed_array([first.largest]))
    at = f"{place.function[0]}{_at(place.line[0])}"
    text = _WAYS[first.kind].format(share=percentage(first.share), branches=branches)
    also = [f"{gain.kind} {percentage(gain.share)}" for gain in others]
    rest = f"; {listed(also)}, which may overlap" if also else ""
    yield Sentence(
        f"The most to gain: {text}, {percentage(first.largest_share)} of that in {at}{rest}.",
        first.largest,
    )


def _address(table: Table) -> int | None:
    """That of the first row."""
    address = table.placed_column("address")[0]
    return address if isinstance(address, int) else None


def _at(line: Value) -> str:
    return f" ({line})" if line else ""


def _number(value: Value) -> float | None:
    return value if isinstance(value, int | float) else None
