"""Collectors: perf where the machine has branch records, a software LBR elsewhere."""
