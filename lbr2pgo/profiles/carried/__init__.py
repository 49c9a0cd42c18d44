"""A profile carried over changes of the source it was made of."""
