"""What the rooms hand to each other: branch stacks, counts, address spaces, the waterfall."""
