"""What audits that users call on their own models and data say of their results."""
