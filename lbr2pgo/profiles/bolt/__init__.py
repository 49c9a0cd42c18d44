"""What llvm-bolt reads: fdata and YAML, and what it says of code that it moved."""
