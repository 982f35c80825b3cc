"""Epsilon*: a measurement of one trained model (Negoescu et al., 2023)."""
