"""The ELF file: headers, sections, symbols, relocations, PLT and unwind tables."""
