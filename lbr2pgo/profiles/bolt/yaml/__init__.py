"""BOLT's YAML."""
