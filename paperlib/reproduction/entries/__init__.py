"""What the entries for users say of made-up rows whose truth is known: counts for a page."""
