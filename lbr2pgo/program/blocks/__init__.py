"""Functions, blocks and jump tables as BOLT sees them: code that tools name by its places."""
