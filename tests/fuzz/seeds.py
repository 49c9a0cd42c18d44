"""Files that fuzzing starts from: shipped recordings and programs, the corpora, written text.

`test_fuzz.py` sees to it that the first seed of a target is not refused: its mutants would reach
little.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from builders.fixtures import ROOT, TESTBINS

CORPUS = ROOT.parent / "shared" / "corpus"
BINARY = TESTBINS / "x86-64" / "interp.pie"
RECORDING = TESTBINS / "recordings" / "x86-64-interp.pie.perf.data"

_LONGEST = 1 << 18

Seeds = Callable[[], Iterable[bytes]]


def files(*patterns: str) -> Seeds:
    """Files of the shipped programs and recordings, and of the corpora if they are there."""

    def read() -> Iterable[bytes]:
        for folder in (TESTBINS, CORPUS):
            for pattern in patterns:
                for path in sorted(folder.glob(pattern)):
                    if path.stat().st_size <= _LONGEST:
                        yield path.read_bytes()

    return read


def written(key: str) -> Seeds:
    """The file of this form that a conversion of a shipped recording writes."""
    return lambda: [_converted()[key]]


def all_of(*several: Seeds) -> Seeds:
    """One after the other."""
    return lambda: (content for each in several for content in each())


def text(*contents: str) -> Seeds:
    """Contents as they stand."""
    return lambda: [content.encode() for content in contents]


@cache
def _converted() -> dict[str, bytes]:
    """What a conversion of a shipped recording writes, by the form's name."""
    from lbr2pgo.conversion import ConvertOptions, convert
    from lbr2pgo.profiles.registry import formats, output

    forms = [(each, form) for each in formats() for form in each.forms if not form.needs]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        every = (output(each.name, out / form.key, **form.options) for each, form in forms)
        convert(ConvertOptions((RECORDING,), BINARY, outputs=tuple(every)))
        return {form.key: (out / form.key).read_bytes() for _, form in forms}


def counts() -> bytes:
    """Counts of `BINARY` in a form that names no build, so that they are taken for any program."""
    return _converted()["preaggregated"]


def saved() -> bytes:
    """Saved counts."""
    return _converted()["saved_counts"]


@cache
def exact() -> bytes:
    """Exact counts."""
    return (TESTBINS / "recordings" / "x86-64-interp.pie.exact.npz").read_bytes()


def _rows(*rows: tuple[object, ...]) -> str:
    return "".join(" ".join(map(str, row)) + "\n" for row in rows)


INTEL = _rows(
    ("0x1c9", "0x1"), ("0x1c8", "0x1c5"), ("0x345", "0x5"),
    *((hex(0x680 + i), hex(0x1500 + i)) for i in range(4)),
    *((hex(0x6C0 + i), hex(0x1600 + i)) for i in range(4)),
    *((hex(0xDC0 + i), hex(1 << 63 | 7)) for i in range(4)),
)  # fmt: skip
INTEL_JSON = json.dumps({"cpu": 3, "msrs": dict(row.split() for row in INTEL.splitlines())})
AMD = _rows(
    *((hex(0xC0010300 + 2 * i), hex(0x1500 + i)) for i in range(4)),
    *((hex(0xC0010301 + 2 * i), hex(1 << 63 | 0x1600 + i)) for i in range(4)),
)
ARM = _rows(
    *((f"BRBSRC{i}_EL1", hex(0x1500 + i)) for i in range(8)),
    *((f"BRBTGT{i}_EL1", hex(0x1600 + i)) for i in range(8)),
    *((f"BRBINF{i}_EL1", hex(1 << 46 | 3)) for i in range(8)),
)

UPROF = """\
"AMD uProf (Version: 5.1.701.0)"
,
EXECUTION,
Target Path:,"/home/me/app, the new one"

Branch Analysis Summary
OVERHEAD (%),SAMPLES,MISPREDICT (%),MISPREDICT COUNT,SOURCE FUNCTION,TARGET FUNCTION,\
SOURCE LINE,TARGET LINE,SOURCE MODULE,TARGET MODULE,PROCESS
50.00,500,10.00,50,main,"work(int, int)",/src/a.c:7,/src/b.c:3,app,libb.so,app (PID 7)
20.00,200,0.00,0,"work(int, int)",main,/src/b.c:11,/src/a.c:8,libb.so,app,app (PID 7)
"""
RECORDS = "from,to,mispredict,count\n0x1820,0x1800,1,3\n1810,1820,0,1\n"
RANGES = "2\n1200-1210:5\n1220-1230:6\n1\n1200:9\n2\nffffffffffc00001->1200:7\n1210->1220:8\n"
EDGES = "E cycles:u\nT 1200 1210 1220 5 1\nR 1200 1210 1220 5\nB 1200 1210 3 1\nF 1200 1210 4\n"
CLUSTERS = "v1\n# of the build 12\nm a.c\nf f g\n# 7 blocks\nc 0 2 1\nc 3.1\ng 0:9,2:8\nh 0:9f\n"
OLDER_CLUSTERS = "#x\n!f/g M=a.c\n# 7 blocks\n!!0 2 1\n!h\n!!0\n"
YAML = """\
---
header:
  profile-version: 1
  binary-name:     interp.pie
  profile-flags:   [ lbr ]
  dfs-order:       false
  hash-func:       xxh3
functions:
  - name:            main
    fid:             6
    hash:            0x4ACB2BDDE21E3268
    exec:            1
    nblocks:         16
    blocks:
      - bid:             6
        insns:           2
        hash:            0x60499BEB9EC500F0
        succ:            [ { bid: 10, cnt: 4 }, { bid: 7, cnt: 9, mis: 2 } ]
      - bid:             7
        insns:           27
        hash:            0x50007EBB365E00F9
        calls:           [ { off: 0x93, fid: 9, cnt: 1 }, { off: 0xA0,
                                                            fid: 10, cnt: 1 } ]
        succ:            [ { bid: 6, cnt: 0 }, { bid: 8, cnt: 9 } ]
...
"""
SAMPLES = """\
main:184019:1
 4: 534
 4.2: 534 _Z3bari:301 foo:233
 65535: bar:9
  1: 9
 !CFGChecksum: 7
"""
STACKS = """\
# cmdline : /usr/bin/perf record -b ./interp.pie
interp.pie 7/8 1.000001: PERF_RECORD_MMAP2 7/8: [0x5000(0x4000) @ 0 08:01 1 2]: r-xp /interp.pie
interp.pie 7/8 [000] 1.000002: 3 cycles:u: 5100 \
0x5110/0x5100/P/-/-/1/COND/- 0x5120/0x5108/M/X/A/22//- 0x5130/0x5110/-/-/-/0
"""
SYMBOLS = "7 1.000002: 401000 main+0x10/f+0x0/P/-/-/1 f+0x8/main+0x4/M/-/-/0\n"
