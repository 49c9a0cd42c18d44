"""Counts laid over the code: what ran, how often, and what can't be true."""
