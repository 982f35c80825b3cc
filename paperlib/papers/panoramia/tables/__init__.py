"""PANORAMIA on tables."""
