"""speedscope's own format: one profile a measure, of frames with inlined functions.

Where call stacks were recorded, the first profile has them.

Source: jlfwong/speedscope: src/lib/file-format-spec.ts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from lbr2pgo import __version__
from lbr2pgo.analyses.code_profile import MEASURES, CallSamples, CodeProfile
from lbr2pgo.reports.exports.code_frames import UNITS, code_of, name_shown
from lbr2pgo.reports.model import Report

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def as_speedscope(report: Report) -> str:
    """The file; raises InputError where the report has no code."""
    code = code_of(report)
    sums = {name: values.tolist() for name, values in code.by_stack().items()}
    profiles = [_calls(code, code.calls)] if code.calls else []
    for name in MEASURES:
        chosen = [i for i, value in enumerate(sums[name]) if value]
        if chosen:
            weights = [sums[name][i] for i in chosen]
            profiles.append(_profile(UNITS[name], [code.stacks[i] for i in chosen], weights))
    frames: list[dict[str, object]] = [
        {"name": name_shown(frame)}
        | ({"file": frame.file, "line": frame.line} if frame.line else {})
        for frame in code.frames
    ]
    frames += [{"name": name} for name in (code.calls.outside if code.calls else ())]
    whole = {
        "$schema": _SCHEMA,
        "exporter": f"lbr2pgo {__version__}",
        "name": report.title,
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": profiles,
    }
    return json.dumps(whole, separators=(",", ":")) + "\n"


def _profile(
    name: str, samples: Sequence[Sequence[int]], weights: Sequence[int]
) -> dict[str, object]:
    return {
        "type": "sampled",
        "name": name,
        "unit": "none",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }


def _calls(code: CodeProfile, calls: CallSamples) -> dict[str, object]:
    """Call stacks; frames outside stand behind the others."""
    behind = len(code.frames) + len(calls.outside)
    stacks = [
        [frame if frame >= 0 else behind + frame for frame in code.frames_of(stack)]
        for stack in calls.stacks
    ]
    return _profile(UNITS["samples"], stacks, calls.count.tolist())
