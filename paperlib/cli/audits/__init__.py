"""Commands that audit."""
