"""Loops that are compiled when the package is installed; each has a plain oracle in the tests."""
