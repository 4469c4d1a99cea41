"""Words in any language: where they begin and end, their stems, and which only join others."""
