"""What a profile came of: told beside it, and proved by making it again."""
