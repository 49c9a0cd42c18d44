"""LLVM's sample profiles: from counts on code to functions and lines, and the files."""
