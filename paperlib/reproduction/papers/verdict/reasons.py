"""Why evidence decides nothing, or what a verdict is limited to: a cause, and its sentence.

Code decides by causes. Sentences are for readers alone: they may be reworded.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

_LIST = "; "
"""Between the items of a list; shorter enumerations have commas."""


class Cause(Enum):
    """What lies behind an outcome. The first seven are lacks of the evidence."""

    MADE_UP_DATA = auto()
    OTHER_DATA = auto()  # where only the paper's data decide
    ABSENT_RUN = auto()  # of one of the notebooks
    NOT_MEASURED = auto()
    FEW_SEEDS = auto()
    UNMET_CONDITION = auto()
    FEW_REPETITIONS = auto()
    WIDE_INTERVALS = auto()  # all of them wider than the rule allows
    ACROSS_THE_END = auto()  # an interval lies partly in its range
    REPLACED_PART = auto()  # of the paper: such evidence can neither agree nor disagree
    CLAIMS_FAIL = auto()  # of several
    THESE_MODELS = auto()  # a verdict about the models of these runs
    EACH_READING = auto()  # of the paper has this outcome
    READINGS_DIFFER = auto()
    FAILS_IN_EACH_READING = auto()  # a claim of several


@dataclass(frozen=True)
class Wording:
    """The sentence of a cause, and how it is joined to its details.

    Details stand in place of ``{}``, or else after ``before``.
    """

    sentence: str
    before: str = ": "
    between: str = _LIST

    def text(self, details: Iterable[str]) -> str:
        """The sentence with these details."""
        joined = self.between.join(details)
        if "{}" in self.sentence:
            return self.sentence.format(joined)
        return f"{self.sentence}{self.before}{joined}" if joined else self.sentence


WORDINGS: dict[Cause, Wording] = {
    Cause.MADE_UP_DATA: Wording("made-up data decide nothing"),
    Cause.OTHER_DATA: Wording("only the paper's data decide"),
    Cause.ABSENT_RUN: Wording("no run of", before=" ", between=", "),
    Cause.NOT_MEASURED: Wording("not measured", between=", "),
    Cause.FEW_SEEDS: Wording("{} needed", between=", "),
    Cause.UNMET_CONDITION: Wording("a condition is not met"),
    Cause.FEW_REPETITIONS: Wording("{} needed", between=", "),
    Cause.WIDE_INTERVALS: Wording("every interval is wider than {} to each side"),
    Cause.ACROSS_THE_END: Wording("too wide an interval"),
    Cause.REPLACED_PART: Wording("replaced here"),
    Cause.CLAIMS_FAIL: Wording("fails", between=", "),
    Cause.THESE_MODELS: Wording("on these models"),
    Cause.EACH_READING: Wording("in each reading", before=_LIST),
    Cause.FAILS_IN_EACH_READING: Wording("fails in each reading", between=", "),
    Cause.READINGS_DIFFER: Wording("the paper can be read in several ways, which differ"),
}


@dataclass(frozen=True)
class Reason:
    """One cause, and what its sentence names: notebooks, comparisons, counts."""

    cause: Cause
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        return WORDINGS[self.cause].text(self.details)

    @property
    def without_details(self) -> str:
        """The sentence alone, where the details stand elsewhere on the page."""
        return WORDINGS[self.cause].text(())

    @property
    def items(self) -> list[str]:
        """The sentence in the items of its list; one item where it has no list."""
        wording = WORDINGS[self.cause]
        if wording.between != _LIST:
            return [str(self)]
        if wording.before == _LIST:
            return [wording.sentence, *self.details]
        return [wording.text(self.details[:1]), *self.details[1:]]
