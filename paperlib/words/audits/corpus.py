"""Why identifiers of a corpus were left out, and what was read with a loss: the reasons that a log
counts.
"""

SORTED = "stands in a list, and lists of this kind are sorted"
"""The reason for an identifier that follows from its neighbours in part."""

UNFAIR = "identifier behind a text that holds it, or a part of it"
"""The reason for an identifier that the text before it tells."""

WHOLE = "file that was read as one document with all its lines; if each is a text, write JSON lines"
"""The remark on a file of plain text that is all there is."""
