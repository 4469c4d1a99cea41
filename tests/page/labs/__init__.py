"""Tests of the labs."""
