"""Optimal output sets: where an auditor guesses, and where it abstains."""
