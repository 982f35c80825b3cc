"""Audits of what a user brings: scores, a language model with a corpus, a model with its training data."""
