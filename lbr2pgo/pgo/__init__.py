"""Profiles into builds: the loop of building, training and rebuilding, and what it gained."""

STEPS = (
    "build", "training-build", "train", "convert", "rebuild", "again", "propeller", "startup",
    "bolt", "measure",
)  # fmt: skip
"""Of a loop, in their order; the second has work where the recorded build has its own flags."""
NO_TRAINING_BUILD = "   Note: records the build without a profile, since "
"""How the line begins that says why a training build is left out."""
NOT_LAID_OUT = "not laid out, the recording is "
"""How what is told begins where a layout is left out."""
PROFILES = {"clang": "prof", "gcc": "afdo"}
"""What the files of a compiler's profiles end in."""
COUNTERS = "profdata"
"""The same of what counters in the program have counted."""
COMPILERS = tuple(PROFILES)
"""Whose profiles a loop makes, the usual one first."""
