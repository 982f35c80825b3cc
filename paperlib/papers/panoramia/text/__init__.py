"""PANORAMIA on text."""
