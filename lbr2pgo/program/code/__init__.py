"""Code: instructions, functions and control-flow graphs."""
