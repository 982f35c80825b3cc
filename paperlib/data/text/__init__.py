"""Texts and corpora."""
