"""The binary: ELF layout, symbols, instructions, control-flow graphs and debug information."""
