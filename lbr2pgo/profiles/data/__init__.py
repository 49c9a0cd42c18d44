"""What places data by how it was accessed."""
