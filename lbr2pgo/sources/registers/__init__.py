"""Dumps of branch-record registers: Intel, AMD and Arm."""
