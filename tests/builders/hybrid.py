"""`perf script` text of samples with call stacks, read and written plainly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lbr2pgo.model.branch_stacks import BranchStacks, CallChains, from_lists


@dataclass(frozen=True)
class Hybrid:
    """One sample: frames innermost first, then (source, target) with the newest first."""

    frames: Sequence[int]
    entries: Sequence[tuple[int, int]]
    count: int = 1


def read_hybrid(path: Path) -> list[Hybrid]:
    """The samples of a file in which each stands on several lines."""
    samples, frames, count = [], [], 1
    for line in path.read_text().splitlines():
        words = line.split()
        if not words or words[0] == "//" or "PERF_RECORD" in line:
            frames = []
        elif "/" in line:
            entries = [tuple(int(x, 16) for x in w.split("/")[:2]) for w in words if "/" in w]
            frames += [int(word, 16) for word in words if "/" not in word]
            samples.append(Hybrid(frames, entries, count))
            frames, count = [], 1
        elif len(words) == 1 and line == words[0] and words[0].isdigit():
            count = int(words[0])
        else:
            frames.append(int(words[0], 16))
    return samples


def write_hybrid(samples: Iterable[Hybrid]) -> str:
    """As `perf script -F ip,brstack` prints them."""
    return "".join(_text(sample) for sample in samples)


def _text(sample: Hybrid) -> str:
    count = f"{sample.count}\n" if sample.count != 1 else ""
    frames = "".join(f"\t{frame:16x}\n" for frame in sample.frames)
    entries = "  ".join(f"0x{source:x}/0x{target:x}/P/-/-/1" for source, target in sample.entries)
    return f"{count}{frames} {entries}\n\n"


def text_of(batches: Iterable[BranchStacks]) -> str:
    """The same of samples in arrays."""
    return write_hybrid(samples_of(batches))


def samples_of(batches: Iterable[BranchStacks]) -> Iterator[Hybrid]:
    """Each sample by itself."""
    return (sample for batch in batches for sample in _samples(batch))


def _samples(batch: BranchStacks) -> Iterator[Hybrid]:
    assert batch.chains is not None
    frames, pairs = batch.chains.frames.tolist(), batch.entries[:, :2].tolist()
    frame_at, entry_at = batch.chains.offsets.tolist(), batch.offsets.tolist()
    for i in range(len(batch)):
        entries = [(source, target) for source, target in pairs[entry_at[i] : entry_at[i + 1]]]
        yield Hybrid(frames[frame_at[i] : frame_at[i + 1]], entries)


def batch_of(samples: Sequence[Hybrid]) -> BranchStacks:
    """The samples as arrays."""
    batch = from_lists([[(s, t, 2) for s, t in sample.entries] for sample in samples])
    frames = [frame for sample in samples for frame in sample.frames]
    offsets = np.cumsum([0, *(len(sample.frames) for sample in samples)])
    chains = CallChains(np.array(frames, np.uint64), offsets.astype(np.int64))
    return BranchStacks(
        entries=batch.entries, offsets=batch.offsets, pid=batch.pid, tid=batch.tid,
        time=batch.time, event=batch.event, chains=chains,
        ip=np.array([s.frames[0] if s.frames else 0 for s in samples], np.uint64),
        weight=np.array([s.count for s in samples], np.uint64),
    )  # fmt: skip
