"""What the audit of a language model by the identifiers of a corpus is told of: its sections, its
claim, its refusal and its warnings.
"""

from paperlib.core.results import round_down
from paperlib.words.directions import SAYS_NOTHING

TITLE = "Privacy audit of a language model"
"""The title of the page."""

RANKS_PURPOSE = (
    "How often the model prefers an identifier to all alternatives from the same source."
)
"""What the audit of ranks measures."""

INFERENCE_TITLE = "Dataset inference"
INFERENCE_PURPOSE = "Was the model trained on this set? All scores together, by a rank test."
"""What dataset inference measures."""

BEST_KNOWN_TITLE = "Best-known identifiers"
SCORES_TITLE = "Scores"
SCORES_TEXT = (
    "How well each score tells identifiers from alternatives: no bounds; 50 % is guessing."
)
"""What stands above the table of scores."""

UNJUDGED_KIND = "kind with too few identifiers for classifiers, judged by fixed places alone"
LOOK_ALIKE = "look-alike: its letters alone tell it from random values"
"""Why a kind was judged by less than the others, and why an identifier was left out."""


def ranks_title(attack: str) -> str:
    """The title of the audit of ranks by the scores of ``attack``."""
    return f"Ranks of identifiers by {attack}"


def best_known_text(size: int, attack: str) -> str:
    """What stands above the table of the best-known identifiers.

    Args:
        size: Candidates of each identifier, itself included.
        attack: Whose scores rank them.
    """
    return (
        f"The place of each identifier among its {size} candidates by {attack}, "
        f"and its exposure. One in {size} stands first where the model knows nothing: a single "
        "first place can be luck."
    )


def copies_claim(copies: int) -> str:
    """What one example is, for a claim, where an identifier has at most so many copies; "" for
    one.
    """
    if copies == 1:
        return ""
    return f" One example is one identifier, with all its {copies} copies where it has most."


def equal_scores(equal: int, count: int) -> str:
    """The sentence of a refusal where ``equal`` of ``count`` identifiers have the score of all
    their alternatives.
    """
    return (
        f"{equal} of {count} identifiers have the score of all their alternatives, {SAYS_NOTHING}"
    )


def learned_tokens(epsilon: float) -> tuple[str, ...]:
    """The warning that identifiers have fewer tokens than their alternatives; none at 0.

    Args:
        epsilon: What the numbers of tokens alone show, nats.
    """
    if epsilon <= 0:
        return ()
    return (
        "the tokenizer has learned identifiers: numbers of tokens alone show ε ≥ "
        f"{round_down(epsilon):.3f}, and the bound is about both",
    )
