"""Samples of instructions, drawn from the exact counts of a run."""

from __future__ import annotations

import numpy as np

from lbr2pgo.analyses.accuracy import EdgeCounts, executions
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import ImageAddresses, image_addresses
from lbr2pgo.support.arrays import U64


def drawn(edges: EdgeCounts, program: Program, samples: int) -> tuple[ImageAddresses, U64]:
    """Addresses and counts of so many samples, each of any executed instruction."""
    named = np.concatenate([edges.source[edges.source > 0], edges.target[edges.target > 0]])
    code = program.instructions_for(image_addresses(named))
    ran = executions(edges, code)
    count = np.random.default_rng(1).multinomial(samples, ran / ran.sum())
    return code.address[count > 0], count[count > 0].astype(np.uint64)


def preaggregated(address: ImageAddresses, count: U64) -> str:
    """The samples as BOLT's text."""
    rows = zip(address.tolist(), count.tolist(), strict=True)
    return "E instructions\n" + "".join(f"S {a:x} {n}\n" for a, n in rows)
