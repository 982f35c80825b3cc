"""Epsilon*: a measurement from the loss distributions of members and others."""
