"""Our own counts."""
