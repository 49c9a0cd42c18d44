"""Reports: what the analyses found, in the terminal, for scripts, and on one page."""
