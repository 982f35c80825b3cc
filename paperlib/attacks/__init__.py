"""Attacks: from losses and log-probabilities to membership scores."""
