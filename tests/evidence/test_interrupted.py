"""What samples interrupted, beside what the others show."""

from __future__ import annotations

from collections import Counter

import pytest
from builders.recordings import STATIC, STATIC_RECORDING, recorded

from lbr2pgo.evidence.interrupted import INTERRUPTED
from lbr2pgo.evidence.second_look import SecondLook
from lbr2pgo.program.program import Program
from lbr2pgo.replay.recordings import Inputs, read_and_replay
from lbr2pgo.sources.perf_data.reader import PerfData
from lbr2pgo.support.addresses import image_array

PROGRAM = Program.open(STATIC)


def samples(one_in: int):
    """Some of a recording, with stacks of two entries: address, and entries."""
    (batch,) = PerfData(STATIC_RECORDING).batches()
    for ip, start in zip(batch.ip[::one_in], batch.offsets[:-1:one_in], strict=True):
        yield int(ip), [tuple(entry) for entry in batch.entries[start : start + 2].tolist()]


def function_at(address: int) -> int:
    return int(PROGRAM.functions.containing(image_array([address]))[0])


def interrupted(path, chosen, times=1):
    ips, stacks = zip(*chosen, strict=True)
    path.write_bytes(recorded(stacks, ips=ips))
    inputs = Inputs((path,) * times, STATIC)
    found = read_and_replay(inputs, asks=lambda found: SecondLook(found, [INTERRUPTED]))
    return found.told[INTERRUPTED]


@pytest.mark.parametrize("one_in", [9, 2])  # in 2, a function that one sample alone shows
def test_each_sample_beside_all_others(tmp_path, one_in):
    """One fall-through a sample: it begins where the older of its two branches went."""
    chosen = list(samples(one_in))
    pairs = [(function_at(ip), function_at(stack[1][1])) for ip, stack in chosen]
    shown = Counter(function for _, function in pairs)
    known = sum(shown[at] > (at == function) for at, function in pairs)
    assert 0 < known < len(pairs)
    assert interrupted(tmp_path / "once", chosen) == pytest.approx(known / len(pairs))
    known = sum(at in shown for at, _ in pairs)
    assert interrupted(tmp_path / "once", chosen, 2) == pytest.approx(known / len(pairs))


def test_nothing_is_known_of_samples_elsewhere(tmp_path):
    (_, stack), *_ = samples(9)
    assert interrupted(tmp_path / "elsewhere", [(0x10, stack)]) is None
