"""BOLT's view of a program, and the fdata that comes of it."""
