"""What a test whether a set of identifiers was trained on supports and takes for granted."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paperlib.attacks.dataset_inference import DatasetInference

_DRAWN = (
    "Each identifier was drawn from the distribution of its generated alternatives, independently "
    "of the other identifiers and of its context."
)
_DIFFERENT = (
    "Identifiers are different from each other and occur in no data outside the suspect set."
)
_OF_FOLDS = "The folds' ranks are independent, which K-fold only approximates."


def headline(result: "DatasetInference") -> str:
    """The one-sided and the two-sided p-value on one line, with the numbers of identifiers and of
    candidates.
    """
    return (
        f"p {_shown(result.p_value)} one-sided, p {_shown(result.p_value_two_sided)} two-sided "
        f"({result.ranks.size} identifiers, {result.set_size} candidates each, {result.schedule})"
    )


def _shown(p_value: float) -> str:
    """A p-value behind its sign."""
    return "< 0.0001" if p_value < 1e-4 else f"= {p_value:.4f}"


def claim(*, is_exact: bool) -> str:
    """What the p-values mean, exactly or approximately."""
    approximately = "" if is_exact else " only approximately"
    return (
        "If the model had not been trained on the identifiers (nor on anything that depends on "
        "which of its candidates each one is), a p-value of at most a would occur with probability "
        f"a{approximately}. A small p-value is evidence of training on this set; a large one is no "
        "evidence of the contrary."
    )


def assumptions(*, is_exact: bool) -> tuple[str, ...]:
    """Conditions under which the p-values hold, exactly or approximately."""
    if is_exact:
        return (_DRAWN, _DIFFERENT)
    return (_DRAWN, _DIFFERENT, _OF_FOLDS)
