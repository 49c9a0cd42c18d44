"""Code that a process made while it ran, as its compiler told of it."""
