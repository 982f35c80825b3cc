"""Does a generator of text repeat its training text?"""

from paperlib.core import IntArray
from paperlib.generators.text import copied_share


def copied_text(generated: IntArray, trained_on: IntArray, real: IntArray, *, length: int) -> tuple[str, ...]:
    """Warning that generated chunks repeat the generator's training text more than other real text does.

    Args:
        generated: Generated chunks of tokens, shape (n, length of a chunk).
        trained_on: Chunks that the generator was trained on.
        real: Real chunks that it was not trained on.
        length: Tokens of a chunk; three quarters of them in a row count as a copy.

    Returns:
        One sentence, or nothing where the shares differ by at most 2 points.
    """
    run = max(1, round(0.75 * length))
    copied, by_chance = (copied_share(rows, trained_on, length=run) for rows in (generated, real))
    if copied <= by_chance + 0.02:
        return ()
    return (
        f"the generator copies: {copied:.1%} of its chunks hold {run} tokens in a row of its training text "
        f"(other real text: {by_chance:.1%}); stop its training earlier or give it more text",
    )
