"""How targets are audited: sizes of the games, attacks to choose from, and what their baseline sees."""

from dataclasses import dataclass

from paperlib.attacks.learned import Attack, BoostedTrees
from paperlib.core import check_choice, check_confidence

FORMS = ("helpers", "paper")
SEARCHES = ("union", "anytime")


@dataclass(frozen=True, kw_only=True)
class AuditConfig:
    """How targets are audited.

    Attributes:
        train: Examples that attacks are trained on, half of them members, even.
        validation: Examples that settings and seeds are chosen on, half of them members, even.
        test: Examples that are judged, each a member by a fair coin: the paper's m.
        attacks: Settings to choose from, for the baseline and for the attack alike.
        form: "paper": the baseline sees the example and the synthetic helper, the attack the example and the
            target. "helpers": both see all helpers, and the attack the target besides.
        searches: How the search over recall levels is paid for; settings are chosen by the first.
        restarts: Trainings of the best setting, of which the best is kept.
        repeats: Games, each with its own split, coins and attacks.
        confidence: Of each audit of each game, in (0, 1).
        seed: Of the first game.
    """

    train: int
    validation: int
    test: int
    attacks: tuple[Attack, ...] = (BoostedTrees(), BoostedTrees(leaves=4, learning_rate=0.2))
    form: str = "helpers"
    searches: tuple[str, ...] = SEARCHES
    restarts: int = 5
    repeats: int = 5
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("form", self.form, FORMS)
        check_confidence(self.confidence)
        if not self.searches:
            raise ValueError("searches: expected at least one of union, anytime")
        for search in self.searches:
            check_choice("searches", search, SEARCHES)
        for name in ("restarts", "repeats"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: expected 1 or more, got {getattr(self, name)}")
