"""PANORAMIA on images."""
