"""llvm-profgen's ranges and branches before symbols."""
