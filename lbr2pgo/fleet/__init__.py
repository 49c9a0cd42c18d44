"""Many recordings, of many programs, from many machines."""
