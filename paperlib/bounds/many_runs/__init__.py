"""Bounds from independent training runs."""
