"""Profile formats, one module each, read and written over one in-memory model."""
