"""Orders of functions, for linkers."""
