"""The compiled loops: pure functions over arrays, imported only where a command needs them."""
