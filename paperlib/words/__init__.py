"""Sentences about results, made from the facts that they hold; nothing reads a sentence back."""
