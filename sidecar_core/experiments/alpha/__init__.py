"""α by teacher forcing: conditions, suffix lengths, placements."""
