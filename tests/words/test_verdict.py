"""The verdict says what a number means, judges claims under the right adjacency, and advises."""

from dataclasses import dataclass
from itertools import product
from math import exp, log

import numpy as np
import pytest

from paperlib.bounds import audit_one_run, audit_ranks, epsilon_star
from paperlib.core import AuditResult, MembershipScores, ScoreAudit
from paperlib.core.direction import reversed_direction
from paperlib.core.facts import Refusal, RefusalCode
from paperlib.words import directions
from paperlib.words.verdict import (
    Verdict,
    audit_verdict,
    plain_verdict,
    right_share,
    share_text,
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Bound(AuditResult):
    epsilon: float | None = 2.0
    delta: float = 0.0
    confidence: float = 0.95
    total: int = 1000
    ceiling: float | None = 5.8
    guesses: int | None = None
    correct: int | None = None

    @property
    def headline(self) -> str:
        return f"epsilon >= {self.epsilon}"


def bound(epsilon: float | None = 2.0, *, adjacency="add/remove", **parts) -> Bound:
    claim = "not private under add/remove, replacing one example, with all its 7 copies"
    facts = {"claim": claim, "assumptions": ("coins",), "adjacency": adjacency}
    return Bound(epsilon=epsilon, **facts, **parts)


def said(verdict: Verdict) -> str:
    return " ".join(verdict.sentences)


def advice(verdict: Verdict) -> str:
    return " ".join(verdict.next_steps)


def test_the_share_is_what_the_best_guesser_reaches_and_is_rounded_down():
    for epsilon, delta in product((0.0, 0.4, 3.0, 50.0), (0.0, 1e-5, 0.1)):
        # The leakiest mechanism tells the secret with probability delta, else answers by randomised
        # response.
        reached = delta + (1 - delta) / (1 + exp(-epsilon))
        assert right_share(epsilon, delta) == pytest.approx(reached, rel=1e-12)
    assert share_text(right_share(log(9) + 1e-9)) == "90.0 %"
    assert share_text(0.90099) == "90.0 %"
    assert share_text(0.5001) == "50.01 %"
    assert share_text(0.5) == "50 %"
    assert share_text(0.500000001) == "a little more than 50 %"
    assert share_text(right_share(30)) == "99.999 %"


def test_a_bound_is_a_guess_right_so_many_per_cent_of_the_time():
    verdict = plain_verdict(bound(2.0), warnings=())
    guess = (
        "For some record and some outcome, whoever sees the model and guesses whether that record "
        "was trained on is right in at least 88.0 % of cases"
    )
    assert guess in verdict.sentences[0]
    assert "lower bound with 95 % confidence" in said(verdict)
    assert verdict.refuted is None
    verdict = plain_verdict(bound(1.0, delta=0.01))
    assert (
        f"right in at least {share_text((exp(1) + 0.01) / (1 + exp(1)))} " in verdict.sentences[0]
    )
    assert "includes delta = 0.01" in said(verdict)
    assert "delta" not in said(plain_verdict(bound(1.0)))


def test_a_bound_of_zero_says_what_could_have_been_shown():
    verdict = plain_verdict(bound(0.0, ceiling=0.7831, total=10))
    assert "found no leak that it could prove" in verdict.sentences[0]
    assert "10 records it could have shown an epsilon of at most 0.784" in verdict.sentences[0]
    assert "does not show that the training is private" in said(verdict)
    assert "more records" in advice(verdict)
    assert "tossing a coin" not in said(verdict)
    assert "it could not have" in plain_verdict(bound(0.0, ceiling=0.0)).sentences[0]
    assert "no leak" in plain_verdict(bound(0.0, ceiling=None)).sentences[0]
    steps = advice(plain_verdict(bound(0.0, ceiling=6.0)))
    assert ("stronger attack" in steps, "more records" in steps) == (True, False)


@pytest.mark.parametrize(("claimed", "refuted"), [(1.9, True), (2.0, False), (2.1, False)])
def test_a_claim_for_adding_or_removing_is_refuted_below_the_bound_alone(claimed, refuted):
    verdict = plain_verdict(bound(2.0), claimed_epsilon=claimed)
    assert verdict.refuted is refuted
    words = [text for text in verdict.sentences if f"claimed epsilon of {claimed:g}" in text]
    assert len(words) == 1
    assert ("is refuted" in words[0]) is refuted
    assert "for adding or removing one record" in words[0]
    assert ("This does not confirm the claim" in said(verdict)) is not refuted


@pytest.mark.parametrize(
    ("claimed", "replacing", "removing"),
    [(0.9, True, True), (1.0, True, False), (2.0, False, False)],
)
def test_a_game_judges_a_claim_under_both_adjacencies(claimed, replacing, removing):
    verdict = plain_verdict(bound(2.0, adjacency="replace"), claimed_epsilon=claimed)
    (first,) = [
        text for text in verdict.sentences if text.startswith("As a claim for replacing one")
    ]
    (second,) = [
        text for text in verdict.sentences if text.startswith("As a claim for adding or removing")
    ]
    assert ("is refuted" in first, "is refuted" in second) == (replacing, removing)
    assert f"allows {2 * claimed:g} when a record is replaced" in second
    assert verdict.refuted is (replacing and removing)
    assert "that record or another one in its place" in verdict.sentences[0]
    verdict = plain_verdict(bound(4.0, adjacency="replace", delta=1e-5), claimed_epsilon=1)
    assert f"at delta = {1e-5 / (1 + exp(1)):.3g} is refuted" in said(verdict)
    assert "replacing one record, epsilon = 1 at delta = 1e-05 is refuted" in said(verdict)


@pytest.mark.parametrize(
    ("adjacency", "steps", "happens"),
    [
        ("add/remove", [3], "3 copies of a record are added or removed together"),
        ("replace", [3, 6], "3 copies of a record are replaced"),
    ],
)
def test_a_claim_for_one_record_allows_more_where_an_example_is_several_copies(
    adjacency, steps, happens
):
    outcomes = []
    for epsilon, delta in ((3.01, 0.0), (2.99, 0.0), (6.01, 1e-5)):
        verdict = plain_verdict(
            bound(epsilon, adjacency=adjacency, copies=3, delta=delta), claimed_epsilon=1
        )
        outcomes.append(verdict.refuted)
        judged = [text for text in verdict.sentences if "the audit shows at least" in text]
        assert [
            f"such a claim allows {k} when {happens}" in text
            for k, text in zip(steps, judged, strict=True)
        ]
        for k, text in zip(steps, judged, strict=True):
            each = delta / sum(exp(step) for step in range(k))
            assert (f"at delta = {each:.3g} is refuted" in text) == (epsilon > k)
    assert outcomes == [len(steps) == 1, False, True]


def test_a_claim_above_the_ceiling_could_not_have_been_refuted_and_delta_zero_settles_none():
    for epsilon, claimed, unseen, words in (
        (1.0, 8, True, "could not have refuted it, as the most it could have shown is 5.000"),
        (1.0, 3, False, "the most this audit could have shown is 5.000"),
    ):
        sentences = said(plain_verdict(bound(epsilon, ceiling=5.0), claimed_epsilon=claimed))
        assert (words in sentences, "could not have" in sentences) == (True, unseen)
    assert "more records" in advice(plain_verdict(bound(0.5, ceiling=5.0), claimed_epsilon=8))
    for delta in (0.0, 1e-6):
        steps = advice(plain_verdict(bound(delta=delta), claimed_epsilon=1))
        assert ("audit again with that delta" in steps) == (delta == 0)
    for warnings in ((), ("few non-members",)):
        steps = plain_verdict(bound(), warnings=warnings).next_steps
        assert ("warnings" in steps[0]) == bool(warnings)


def test_a_reversed_direction_is_no_answer_and_comes_first():
    scores = MembershipScores(np.arange(50), np.arange(40, 90))
    (refusal,) = directions.refusals(reversed_direction(scores))
    assert refusal.sentence in said(plain_verdict(audit_one_run(scores)))  # its own is enough
    verdict = plain_verdict(
        bound(2.0), claimed_epsilon=1, warnings=("something else",), refusals=(refusal,)
    )
    assert verdict.sentences[0].startswith("Not an answer yet")
    assert refusal.sentence in verdict.sentences[0]
    assert ("is right in" in said(verdict), verdict.refuted) == (False, None)
    assert "claimed epsilon of 1 is not judged" in said(verdict)
    assert "--kind losses" in verdict.next_steps[0]
    steps = ("compute them again", "take another score")
    equal = Refusal(code=RefusalCode.EQUAL_SCORES, sentence="all scores are 3", steps=steps)
    steps = plain_verdict(bound(2.0, refusals=(equal,))).next_steps
    assert steps == ("Compute them again.", "Take another score.", "Then audit again.")


def test_what_is_no_lower_bound_refutes_nothing_and_a_claim_that_is_no_epsilon_is_refused():
    for kind, epsilon in (("measurement", 9.0), ("baseline", 9.0), ("lower bound", None)):
        verdict = plain_verdict(bound(epsilon), claimed_epsilon=1, kind=kind)
        assert verdict.refuted is None
        assert "not a lower bound" in verdict.sentences[0]
        assert "neither refuted nor confirmed" in said(verdict)
    for claimed in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"^claimed_epsilon: expected a number in \[0, inf\)"):
            plain_verdict(bound(), claimed_epsilon=claimed)


def test_the_adjacency_is_that_of_the_real_claims_and_coins_are_advised_where_they_came_late():
    rng = np.random.default_rng(0)
    scores = MembershipScores(rng.normal(2, 1, 300), rng.normal(0, 1, 300))
    weak = MembershipScores(rng.normal(0, 1, 300), rng.normal(0, 1, 300))
    coins = "toss a fair coin for each audit record"
    for one in (scores, weak):
        before = audit_one_run(one)
        assert before.adjacency == "add/remove"
        assert coins not in advice(plain_verdict(before))
        for design in ("game", "played"):
            after = audit_one_run(one, design=design)
            assert after.adjacency == "replace"
            assert coins in advice(plain_verdict(after))
    for ranks in (np.ones(50, int), np.arange(1, 51)):
        by_rank = audit_ranks(ranks, np.full(50, 100))
        assert by_rank.adjacency == "replace"
        assert coins not in advice(plain_verdict(by_rank))
    assert epsilon_star(scores.nonmember, scores.member).adjacency == ""
    perfect = audit_one_run(MembershipScores(np.arange(300, 600), np.arange(300)))
    assert perfect.epsilon <= audit_one_run(weak).most < perfect.epsilon + 0.1


def test_the_condition_goes_with_the_verdict_and_an_audit_that_was_not_possible_is_no_answer():
    verdict = plain_verdict(bound(condition="assumes coins"))
    fields = {"sentences": list(verdict.sentences), "next_steps": list(verdict.next_steps)}
    assert verdict.to_dict() == {**fields, "refuted": None, "condition": "assumes coins"}
    assert "Condition: assumes coins." in str(verdict)
    refused = ScoreAudit(
        title="a", kind="lower bound", purpose="p", result=None, refused="scores: too few"
    )
    verdict = audit_verdict(refused, ())
    assert verdict.sentences[0].startswith("Not an answer yet")
    assert "too few" in said(verdict)


@pytest.mark.parametrize("what", ["model", "release"])
def test_an_audit_without_an_answer_says_nothing_about_what_was_published(what):
    refusal = Refusal(code=RefusalCode.EQUAL_SCORES, sentence="all scores are equal")
    verdict = plain_verdict(Bound(claim="", assumptions=(), refusals=(refusal,)), what=what)
    assert verdict.sentences[1].endswith(f"the numbers of this audit say nothing about the {what}.")
