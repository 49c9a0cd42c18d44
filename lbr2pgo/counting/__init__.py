"""From branch stacks to counted traces of one image."""
