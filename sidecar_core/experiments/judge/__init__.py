"""A language model compares tag lists."""
