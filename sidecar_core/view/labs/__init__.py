"""What the labs show."""
