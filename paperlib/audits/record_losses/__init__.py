"""One loss per record of a model that the user brings."""
