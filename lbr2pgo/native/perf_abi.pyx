"""Numbers of perf.data files; they stand in perf_abi.pxd."""
