"""Whether the bounds hold: mechanisms of known epsilon, coverage, and rules in common use."""
