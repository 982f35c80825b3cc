"""Bounds from guesses on a chosen set of outputs."""
