"""Tools that know nothing of the field: output, safe text, threads, timings, arrays, errors."""
