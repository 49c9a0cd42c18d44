"""Profiles into builds: the loop of building, training and rebuilding, and what it gained."""

MOST_MISSING = 0.5
"""A profile with more of its counts in functions that a program lacks is another program's."""
