"""Generators of non-members: examples that could have been trained on, and were not."""
