"""What the names of columns tell: exactly that, or None."""

import re
from collections.abc import Iterable, Sequence

_WORDS = re.compile(r"\w+(?:[ .\-]\w+)*", re.ASCII)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_QUALIFIER = (
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
_SCORE_QUALIFIER = (
    r"(?:mia|membership|member|attack|lira|rmia|target|victim|model|mean|avg|average|sum|total|per|token|"
    r"tokens|example|sample|record|sequence|final|(?:true|correct)_(?:class|label))"
)
_SCORE = (
    r"(?:scores?|log_?probs?|log_probabilit(?:y|ies)|logp|log_?likelihoods?|log_?lik|likelihoods?"
    r"|(?:log_)?confidences?(?:_scores?)?|logits?|member(?:ship)?_prob(?:s|abilit(?:y|ies))?)"
)
_LOSSES = re.compile(rf"(?:{_QUALIFIER}_)*{_LOSS}(?:_(?:{_QUALIFIER}|[0-9]+))*")
_SCORES = re.compile(rf"(?:{_SCORE_QUALIFIER}_)*{_SCORE}(?:_{_SCORE_QUALIFIER})*")

_MEMBERS = re.compile(
    r"(?:is_|was_)?(?:member|membership|train|training|trained|seen|in_train(?:ing)?(?:_set|_data)?)"
    r"|member(?:ship)?_label|split"
)
_OUT = r"non_?members?|out|test|hold_?out|held_?out|unseen|val(?:id|idation)?"
_ROLES = {"nonmember": rf"{_OUT}|population", "member": r"members?|in|train(?:ing)?|trained|seen"}
_OPPOSITE = re.compile(rf"(?:is_|was_|in_)?(?:{_OUT})")
_NUMBERED = re.compile(r"(?:data_?)?(?:splits?|folds?|sets?|subsets?|partitions?)")
INDEX = re.compile(r"|index|unnamed:? ?\d*|level_\d+|__index_level_\d+__", re.IGNORECASE)
"""Names that tables give to their row numbers."""


def plain(name: str) -> str:
    """Words of a name as val_loss; a name with other signs, such as -loss, is nothing that is
    known.
    """
    text = name.strip()
    if not _WORDS.fullmatch(text):
        return text
    return re.sub(r"[ .\-_]+", "_", _CAMEL.sub("_", text)).strip("_").lower()


def kind_of_name(name: str) -> str | None:
    """Direction of a column by its name: "losses", "scores", or None where the name does not
    tell.
    """
    text = plain(name)
    if _LOSSES.fullmatch(text):
        return "losses"
    return "scores" if _SCORES.fullmatch(text) else None


def tells_membership(name: str) -> bool:
    """Whether a column of this name says who is a member."""
    return _MEMBERS.fullmatch(plain(name)) is not None


def tells_nonmembership(name: str) -> bool:
    """Whether 1 in a column of this name seems to say that a record is no member."""
    return _OPPOSITE.fullmatch(plain(name)) is not None


def tells_part(name: str) -> bool:
    """Whether a column of this name numbers parts of the data, such as a split or a fold."""
    return _NUMBERED.fullmatch(plain(name)) is not None


def check_features(name: str, columns: Iterable[object]) -> None:
    """Refuse (ValueError) names of features that say who is a member, or that number the rows."""
    for column in map(str, columns):
        if tells_membership(column) or INDEX.fullmatch(column.strip()):
            raise ValueError(
                f"{name}: {column!r} says who is a member or numbers the rows; leave it out"
            )


def role_of(name: str) -> tuple[str, str] | None:
    """Class whose values an array holds, "member" or "nonmember", and the rest of its plain name,
    such as ("member", "losses"); None for a name that says no class.
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
    """The names of an array of members and one of non-members, such as ("train_loss",
    "test_loss").

    None where no two names, or more than two, are such a pair, and where the arrays seem to be
    columns of one table.
    """
    roles = {name: role_of(name) for name in names}
    pairs: list[tuple[str, str]] = []
    for member, role in roles.items():
        if role is None or role[0] != "member":
            continue
        counterpart = ("nonmember", role[1])
        pairs += [(member, name) for name in roles if roles[name] == counterpart]
    if len(pairs) != 1:
        return None
    # Beside a known score, or what says who is a member, they are the columns of a table.
    others = [name for name in names if name not in pairs[0]]
    if any(map(kind_of_name, others)) or any(map(tells_membership, others)):
        return None
    return pairs[0]
