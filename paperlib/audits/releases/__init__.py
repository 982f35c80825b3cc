"""Audits of what was released: synthetic tables, texts and images whose generator is not known."""
