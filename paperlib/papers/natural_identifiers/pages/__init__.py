"""What the notebooks of natural identifiers show: figures, tables and verdicts, each by one call."""
