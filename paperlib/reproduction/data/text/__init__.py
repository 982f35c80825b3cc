"""Texts of the papers."""
