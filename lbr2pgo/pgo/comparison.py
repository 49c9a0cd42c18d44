"""What one program costs beside another, in words: what is certain, and what is noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from lbr2pgo.pgo.measure import Measured
from lbr2pgo.pgo.timing import is_short
from lbr2pgo.support.counted import counted, listed

_COUNTS = {
    "instructions": "instructions", "taken": "taken branches", "cycles": "cycles of the model",
}  # fmt: skip


def changes(measured: Sequence[Measured]) -> Iterator[str]:
    """A sentence for each program but the first, which it is compared with."""
    base, *others = measured
    for each in others:
        yield f"{each.name} {change(each, base, base.name)}."


def change(each: Measured, base: Measured, than: str = "the plain build") -> str:
    """What a program needs beside another, which `than` names; the end of a sentence."""
    certain, doubtful = list[str](), list[str]()
    ratios = {**each.count_ratios(base), "cycles": each.cycle_ratio(base)}
    noise = {**base.noise, "cycles": max(base.noise.values())}
    for name, words in _COUNTS.items():
        ratio = ratios[name]
        if ratio not in (None, 1):
            said = f"{abs(1 - ratio):.1%} {'fewer' if ratio < 1 else 'more'} {words}"
            (certain if abs(1 - ratio) > noise[name] else doubtful).append(said)
    time = _time(each, base)
    is_sure = each.sure_time(base) is not None
    untold = is_short(base.seconds)
    certain += [time] if is_sure else []
    doubtful += [time] if time and not is_sure and not untold else []
    parts = [
        f"needs {listed(certain)} than {than}" if certain else f"needs the same as {than}",
        *([] if len(base.seconds) else ["not timed"]),
        *([f"noise: {', '.join(doubtful)}"] if doubtful else []),
        *([f"too short to tell: {time or 'the clock stood still'}"] if untold else []),
        *_size(each, base),
    ]
    return "; ".join(parts)


def decided_otherwise(measured: Sequence[Measured]) -> Iterator[str]:
    """What decides which program is best where their times can't, and why; else nothing."""
    first = next(iter(measured), None)
    if first is not None and is_short(first.seconds):
        judge = "counts" if first.counted.front_end is None else "cycles of the model"
        yield (
            f"Times of {median(first.seconds.tolist()) * 1000:.1f} ms are too short to tell: "
            f"{judge} decide."
        )


def _time(each: Measured, base: Measured) -> str:
    """In words; nothing if it was not timed."""
    time = each.time_ratio(base)
    if time is None:
        return ""
    word = "less" if time.median < 1 else "more"
    interval = f"{time.low:.3f} to {time.high:.3f}, p = {each.time_chance(base):.2g}"
    return f"{abs(1 - time.median):.1%} {word} user time ({time.median:.3f}, {interval})"


def _size(each: Measured, base: Measured) -> Iterator[str]:
    if each.size is not None and base.size is not None and base.size.text:
        pages = f"{counted(each.size.hot_pages, 'hot page')} in place of {base.size.hot_pages:,}"
        yield f"code of {each.growth(base):.2f} times the size, {pages}"
