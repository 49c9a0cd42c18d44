"""Sample profiles that tell functions apart by who called them (CSSPGO)."""
