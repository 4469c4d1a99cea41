"""Whose turn it is at the models."""
