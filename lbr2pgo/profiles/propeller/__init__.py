"""Propeller: blocks counted, laid out anew, and named for the compiler and the linker."""
