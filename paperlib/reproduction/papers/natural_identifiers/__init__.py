"""Natural identifiers: random strings of a corpus as canaries."""
