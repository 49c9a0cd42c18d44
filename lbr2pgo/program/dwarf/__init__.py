"""DWARF: functions, inlined calls and lines of code addresses."""
