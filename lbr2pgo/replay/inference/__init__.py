"""A flow that adds up, from counts that don't: of sampled instructions, or of some branches."""
