"""speedscope's own format: one profile a measure, of frames with inlined functions.

Source: jlfwong/speedscope: src/lib/file-format-spec.ts.
"""

from __future__ import annotations

import json

from lbr2pgo import __version__
from lbr2pgo.analyses.code_profile import MEASURES
from lbr2pgo.reports.exports.code import UNITS, code_of
from lbr2pgo.reports.model import Report

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def as_speedscope(report: Report) -> str:
    """The file; raises InputError where the report has no code."""
    code = code_of(report)
    sums = {name: values.tolist() for name, values in code.by_stack().items()}
    profiles = []
    for name in MEASURES:
        chosen = [i for i, value in enumerate(sums[name]) if value]
        if chosen:
            weights = [sums[name][i] for i in chosen]
            profiles.append(
                {
                    "type": "sampled",
                    "name": UNITS[name],
                    "unit": "none",
                    "startValue": 0,
                    "endValue": sum(weights),
                    "samples": [code.stacks[i] for i in chosen],
                    "weights": weights,
                }
            )
    frames = [
        {"name": frame.function or "[unknown]"}
        | ({"file": frame.file, "line": frame.line} if frame.line else {})
        for frame in code.frames
    ]
    whole = {
        "$schema": _SCHEMA,
        "exporter": f"lbr2pgo {__version__}",
        "name": report.title,
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": profiles,
    }
    return json.dumps(whole, separators=(",", ":")) + "\n"
