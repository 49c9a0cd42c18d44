"""Profiles into builds: the loop of building, training and rebuilding, and what it gained."""
