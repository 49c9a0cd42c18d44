"""perf.data: what `perf record -b` writes, read without perf."""
