"""BOLT's fdata."""
