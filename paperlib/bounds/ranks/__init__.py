"""Bounds from the rank of each true record among alternatives drawn like it."""
