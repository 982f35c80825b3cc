"""Audit the privacy of machine-learning models without retraining them."""
