"""From branch stacks with call stacks to counts by calling context."""
