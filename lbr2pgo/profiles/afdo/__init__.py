"""GCC's sample profile (`.afdo`)."""
