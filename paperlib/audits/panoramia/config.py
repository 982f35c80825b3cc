"""Settings of audits: sizes of the games, attacks to choose from, and what their baseline sees."""

from dataclasses import dataclass
from typing import Literal, get_args

from paperlib.attacks.learned import Attack, BoostedTrees
from paperlib.core import RecallSearch, check_at_least, check_choice, check_confidence

Form = Literal["helpers", "paper"]
FORMS: tuple[Form, ...] = get_args(Form)
SEARCHES: tuple[RecallSearch, ...] = get_args(RecallSearch)


@dataclass(frozen=True, kw_only=True)
class AuditConfig:
    """Settings of audits.

    Attributes:
        train: Number of examples that attacks are trained on, half of them members, even, 2 or more.
        validation: Number of examples that trainings are stopped by (half of them) and that settings and
            restarts are chosen on (the others), half of them members, even, 4 or more.
        test: Number of examples that are judged, each a member by a fair coin: the paper's m.
        attacks: Settings to choose from, for the baseline and for the attack alike.
        form: "paper": the baseline sees the example and the synthetic helper, the attack the example and the
            target. "helpers": both see all helpers, and the attack the target besides, in whose place the
            baseline sees the placebo, if there is one.
        searches: Corrections for testing many recall levels; settings are chosen by the first.
        restarts: Trainings of the best setting, 1 or more, of which the best is kept.
        repetitions: Number of games, 1 or more, each with its own split, coins and attacks.
        confidence: Confidence level of each audit of each game, in (0, 1).
        seed: Seed of the first game, 0 or more.
        same_test: True judges all games on one test part, with one toss of its coins, so that they differ in
            what attacks learn from alone (the paper, Appendix D.1). Their deviation then leaves out the test
            part's share.
    """

    train: int
    validation: int
    test: int
    attacks: tuple[Attack, ...] = (BoostedTrees(), BoostedTrees(leaves=4, learning_rate=0.2))
    form: Form = "helpers"
    searches: tuple[RecallSearch, ...] = SEARCHES
    restarts: int = 5
    repetitions: int = 5
    confidence: float = 0.95
    seed: int = 0
    same_test: bool = False

    def __post_init__(self) -> None:
        check_choice("form", self.form, Form)
        check_confidence(self.confidence)
        if not self.searches:
            raise ValueError("searches: expected at least one of union, anytime")
        for search in self.searches:
            check_choice("searches", search, RecallSearch)
        check_at_least(1, restarts=self.restarts, repetitions=self.repetitions)
