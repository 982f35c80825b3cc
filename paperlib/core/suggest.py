"""What somebody probably meant by a word that is not known."""

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The known word that is most like ``word``, as the end of an error message; upper case does not matter.

    Args:
        word: Word that is not known.
        known: Words that are.

    Returns:
        Text such as ``"; did you mean 'loss'?"``, or "" if no known word is like it.

    >>> did_you_mean("Los", ["loss", "member"])
    "; did you mean 'loss'?"
    >>> did_you_mean("xyz", ["loss", "member"])
    ''
    """
    spelled = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), spelled, n=1)
    return f"; did you mean {spelled[near[0]]!r}?" if near else ""
