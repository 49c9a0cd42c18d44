"""BOLT's pre-aggregated profile."""
