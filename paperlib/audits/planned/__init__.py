"""Audits that are sealed before training, and the receipts that show it."""
