"""Recorders: hardware through perf, or the software LBR."""
