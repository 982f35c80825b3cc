"""The former place of the readers of tables, which are in `paperlib.core.reading`."""
