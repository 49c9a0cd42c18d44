"""`perf script -F …brstack` text."""
