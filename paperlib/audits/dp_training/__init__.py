"""Audits of a training loop of DP-SGD: its trainings, and checks of what they release."""
