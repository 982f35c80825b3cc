"""What the names of columns and arrays tell: direction, membership, and pairs of arrays.

A name whose direction is doubtful tells nothing: then the user is asked.
"""

import re
from collections.abc import Sequence

_WORDS = re.compile(r"\w+(?:[ .\-]\w+)*", re.ASCII)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_PLACE = (
    r"(?:val|valid|validation|train|training|test|eval|dev|target|victim|model|mean|avg|average|sum|total|"
    r"per|token|tokens|example|sample|record|row|sequence|word|final|last|epoch|step|raw|lm|mlm)"
)
_LOSS = (
    r"(?:(?:(?:nll|ce|bce|xent|mse|log|logistic|hinge|squared|lm|(?:binary_|categorical_)?cross_?entropy)_)?"
    r"loss(?:es)?"
    r"|nlls?|ce|bce|xent|logloss(?:es)?|(?:binary_|categorical_)?cross_?entrop(?:y|ies)"
    r"|(?:log_)?(?:ppls?|perplexit(?:y|ies))"
    r"|neg(?:ative)?_log_?(?:likelihoods?|lik|probs?|probabilit(?:y|ies))"
    r"|mse|rmse|mae|(?:squared|absolute)_errors?)"
)
_SCORE_PLACE = (
    r"(?:mia|membership|member|attack|lira|rmia|target|victim|model|mean|avg|average|sum|total|per|token|"
    r"tokens|example|sample|record|sequence|final|(?:true|correct)_(?:class|label))"
)
_SCORE = (
    r"(?:scores?|log_?probs?|log_probabilit(?:y|ies)|logp|log_?likelihoods?|log_?lik|likelihoods?"
    r"|(?:log_)?confidences?(?:_scores?)?|logits?|member(?:ship)?_prob(?:s|abilit(?:y|ies))?)"
)
_LOSSES = re.compile(rf"(?:{_PLACE}_)*{_LOSS}(?:_(?:{_PLACE}|[0-9]+))*")
_SCORES = re.compile(rf"(?:{_SCORE_PLACE}_)*{_SCORE}(?:_{_SCORE_PLACE})*")

_MEMBERS = re.compile(
    r"(?:is_|was_)?(?:member|membership|train|training|trained|seen|in_train(?:ing)?(?:_set|_data)?)"
    r"|member(?:ship)?_label|split"
)
NONMEMBERS = re.compile(
    r"(?:is_|was_|in_)?(?:non_?members?|out|test|hold_?out|held_?out|unseen|val(?:id|idation)?)"
)
"""Plain names in which a 1 would point to a non-member."""

NUMBERED = re.compile(r"(?:data_?)?(?:splits?|folds?|sets?|subsets?|partitions?)")
"""Plain names of columns in which numbers count the parts of a data set, such as 0 for the first one."""

INDEX = re.compile(r"|index|unnamed:? ?\d*|level_\d+", re.IGNORECASE)
"""Names that tables give to their row numbers."""

_ROLES = {
    "nonmember": r"non_?members?|out|test|hold_?out|held_?out|unseen|val(?:id|idation)?|population",
    "member": r"members?|in|train(?:ing)?|trained|seen",
}


def plain(name: str) -> str:
    """Words of a name in lower case, joined by underscores; one with other signs is nothing that is known.

    >>> plain("Val-Loss"), plain("isMember"), plain("-loss")
    ('val_loss', 'is_member', '-loss')
    """
    text = name.strip()
    if not _WORDS.fullmatch(text):
        return text
    return re.sub(r"[ .\-_]+", "_", _CAMEL.sub("_", text)).strip("_").lower()


def kind_of(name: str) -> str | None:
    """Direction of a column by its name: "losses", "scores", or None where the name does not tell."""
    text = plain(name)
    if _LOSSES.fullmatch(text):
        return "losses"
    return "scores" if _SCORES.fullmatch(text) else None


def kind_of_class(name: str) -> str | None:
    """As `kind_of`, for values of one class alone, whose name may say which class it is."""
    return kind_of(name) or kind_of(measure_of(name))


def tells_membership(name: str) -> bool:
    """Whether a column of this name says who is a member."""
    return _MEMBERS.fullmatch(plain(name)) is not None


def role_of(name: str) -> tuple[str, str] | None:
    """Class whose values an array holds, and what is left of its name; None if the name does not tell.

    >>> role_of("nonmember_losses"), role_of("scores_in"), role_of("loss")
    (('nonmember', 'losses'), ('member', 'scores'), None)
    """
    text = plain(name)
    for role, words in _ROLES.items():
        if re.fullmatch(words, text):
            return role, ""
        match = re.fullmatch(rf"(?:{words})_(.+)", text) or re.fullmatch(rf"(.+)_(?:{words})", text)
        if match:
            return role, match[1]
    return None


def measure_of(name: str) -> str:
    """The plain name without the class that it may say."""
    return plain((role_of(name) or ("", name))[1])


def array_pair(names: Sequence[str]) -> tuple[str, str] | None:
    """Names of an array of members and one of non-members; None without one such pair.

    Where another array is a known score or says who is a member, the arrays are the columns of a table.

    >>> array_pair(["members", "nonmembers"])
    ('members', 'nonmembers')
    >>> array_pair(["loss", "train", "test"])
    """
    roles = {name: role_of(name) for name in names}
    pairs = [
        (first, second)
        for first, role in roles.items()
        for second, other in roles.items()
        if role and other and role[0] == "member" and other == ("nonmember", role[1])
    ]
    if len(pairs) != 1:
        return None
    others = [name for name in names if name not in pairs[0]]
    return None if any(kind_of(name) or tells_membership(name) for name in others) else pairs[0]
