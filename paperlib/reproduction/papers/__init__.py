"""One module per paper or study: plain functions from a frozen configuration to values."""
