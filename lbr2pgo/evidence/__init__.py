"""What a second pass over the samples collects, beyond counts."""
