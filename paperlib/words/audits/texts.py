"""What is said of an audit of texts of known membership under a language model."""

DOCUMENT_TITLE = "Privacy audit of a language model by its texts"
TOGETHER_TITLE = "One training run, all scores together"
TOGETHER_PURPOSE = "The main number: each guess is learned from the coins revealed before."
"""What the audit of all scores asks, beside its title."""

ALONE_PURPOSE = "No order is learned."
"""What the audit of one score has beside that of all, under `score_alone`."""

AUC_HEADING = "AUC of each score with 99 % intervals, no bounds:"
"""What stands above the table of scores as text."""

NO_BOUNDS = "How well it tells members from non-members: no bounds; 0.5 is guessing."
"""What the numbers of the table of scores are."""

WITHOUT_THE_MODEL = (
    f"{NO_BOUNDS} What tells them apart without a model is in the model's scores, too: no bound."
)
"""What the numbers of the table without the model are."""


def score_alone(name: str) -> str:
    """The title of the audit of one score beside that of all together."""
    return f"The score {name} alone"


def with_copies(copies: int) -> str:
    """What one example is, for a claim, where each text was trained on so many times."""
    return f"One example is one text with all its {copies} copies."


def started_twice(count: int, total: int) -> str:
    """That so many of all texts bring start tokens which the tokenizer puts there, too."""
    return (
        f"{count:,} of {total:,} texts began with start tokens twice, their own and the "
        "tokenizer's: they were read once, as training should have read them"
    )


def no_bound(refused: str) -> str:
    """The headline where no bound is given, for the reason ``refused``."""
    return f"No bound: {refused}"


def extraction(
    tries: int,
    chance: float,
    *,
    members: tuple[int, int],
    nonmembers: tuple[int, int],
    short: int,
) -> str:
    """How many texts the model would continue as they go on.

    Args:
        tries: Number of tries for each text.
        chance: Least probability of an extracted text.
        members, nonmembers: Number of texts that would be extracted, and of those that were asked.
        short: Number of texts that are too short to be asked.
    """
    return (
        f"In {tries:,} tries the model would continue {members[0]:,} of {members[1]:,} members, "
        f"and {nonmembers[0]:,} of {nonmembers[1]:,} non-members, as the text "
        f"goes on, each with probability {chance:g} or more; "
        f"{short:,} texts are too short to be asked. This is a "
        "measurement."
    )


def extraction_remark(listed: int, total: int) -> str:
    """What to mind about the table of extracted texts, which lists so many of ``total``."""
    return (
        "This table tells who was trained on: share it with care. It has "
        f"{listed} of {total}; the JSON has all."
    )
