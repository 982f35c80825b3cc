"""Does a trained model give away which labels it was trained on? Each true label against another
one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, logit

from paperlib.audits.score_results import Audits
from paperlib.audits.scores import audits_of, rounded
from paperlib.bounds import one_run_epsilon
from paperlib.bounds.one_run.audit import OneRunResult
from paperlib.bounds.one_run.fair_coins import DOUBTFUL, IMPLAUSIBLE, fair_coin_p_value
from paperlib.bounds.output_sets.audit import OutputSetResult
from paperlib.core import AuditResult, FloatArray, IntArray, MembershipScores, ScoreAudit
from paperlib.core.checks import as_floats, check_at_least, check_counts, check_index, find_ties
from paperlib.core.intervals import upper_rate
from paperlib.core.options import Guess
from paperlib.words.audits import labels as words
from paperlib.words.claims import ceiling_note, lower_bound_claim
from paperlib.words.designs import tie_warnings
from paperlib.words.one_run import one_run_assumptions, output_set_assumptions

_COINS, _TIES = 11, 12  # streams of a seed: no two draws of an audit are from one

_MEASURED = ScoreAudit(
    title=words.MEASURED_TITLE, kind="lower bound", purpose=words.MEASURED_PURPOSE
)
_FEWEST = 8  # guesses on either side, the surest, at which the two are compared apart from all


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelsResult(AuditResult):
    """What an audit of labels found, where proxies were drawn and no coin was tossed.

    Attributes:
        epsilon: Lower bound on epsilon, nats; None where the gap was not measured.
        epsilon_plus_gap: Lower bound on epsilon plus the gap between the laws of proxies and
            labels, nats.
        gap: Largest gap that the unseen records leave open at the guesses made, nats; None where
            it was not measured.
        gap_guesses, gap_correct: Guesses on unseen records and those that are right; None likewise.
    """

    epsilon_plus_gap: float
    gap: float | None = None
    gap_guesses: int | None = None
    gap_correct: int | None = None

    @property
    def headline(self) -> str:
        return words.headline(self)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Records with two labels, one row each, and how many records there were in all."""

    labels: IntArray  # (n,), of the n records whose two labels differ
    proxies: IntArray  # (n,)
    #: log of how much more the model holds the label for likely than the proxy, nats, (n,)
    leaning: FloatArray
    records: int  # also those whose two labels are equal
    classes: int

    def surest(self, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Whether the model leans to the true label, shape (pairs that it leans on,), the pairs it
        is surest of first; ties stand in random order.
        """
        shuffled = rng.permutation(self.leaning[self.leaning != 0])
        return shuffled[np.argsort(-np.abs(shuffled), kind="stable")] > 0


def audit_labels(
    probabilities: ArrayLike,
    labels: ArrayLike,
    proxies: ArrayLike,
    *,
    reference: ArrayLike | None = None,
    unseen: Mapping[str, ArrayLike] | None = None,
    tossed: bool = False,
    delta: float = 0.0,
    confidence: float = 0.95,
    guess: Guess = "adaptive",
    seed: int = 0,
) -> Audits:
    """Lower-bound the epsilon of label privacy from one trained model's predictions on its training
    records, or epsilon plus the gap of the proxies.

    A coin names the two labels of each record in random order; the audit guesses from the model's
    probabilities which one was trained on. Records whose two labels are equal tell nothing and are
    left out.

    Guarantee:
        With ``tossed`` that of `audit_one_run` for replacing one label. With ``unseen`` the main
        number exceeds epsilon with probability at most ``1 - confidence`` at delta = 0, if the gap
        between the laws of proxies and labels is no larger where the model is surest among the
        training records than among the unseen ones. With neither the audit is a measurement: the
        same holds of epsilon plus that gap, not of epsilon alone.

    Args:
        probabilities: The model's probability of each class, shape (n, classes), rows that sum to
            1.
        labels: Class numbers that the records were trained with, shape (n,), from 0.
        proxies: Other class numbers, shape (n,), drawn from the law of the labels given the
            features without a look at the labels: by a second annotator, a known noise, or a model
            fitted to other records, whose errors are the gap.
        reference: Probabilities that the proxies were drawn from, or of another model that never
            saw the labels: those of the model are judged in proportion to them, which helps where
            little leaks.
        unseen: Records like the others that the model did not learn from, by the names of these
            arguments: "probabilities", "labels", "proxies", and "reference" where there is one.
            What the model's guesses get right there is the gap of the proxies, and taken off.
        tossed: A fair coin before training chose the label to train on, of two that are fixed; the
            other one is the proxy, and may be any label. There is no gap then.
        delta, confidence, guess: As for `audit_scores`; with ``unseen`` delta is 0, and ``guess``
            that of the measurements beside the bound.
        seed: Seed of the coins and of random splits, 0 or more.

    Raises:
        ValueError: Shapes, values or sums that do not fit, no record with two labels, no
            unseen ones, unseen records beside tossed coins or delta above 0, or a class that is the
            true label so often, or seldom, that the law of the proxies must be another one.

    Source:
        Observational audits of labels: arXiv:2511.14084. The bound is `audit_one_run`'s, the pairs
        and the gap, with its share of the error, are ours.

    >>> rng = np.random.default_rng(0)
    >>> labels, proxies = rng.integers(0, 2, (2, 400))
    >>> model = 0.9 * np.eye(2)[labels] + 0.05
    >>> audit_labels(model, labels, proxies).headline.headline[:31]
    'ε + gap of the proxies ≥ 4.067 '
    >>> others, their_proxies = rng.integers(0, 2, (2, 400))
    >>> guessed = 0.9 * np.eye(2)[rng.integers(0, 2, 400)] + 0.05
    >>> unseen = {"probabilities": guessed, "labels": others, "proxies": their_proxies}
    >>> audit_labels(model, labels, proxies, unseen=unseen).headline.claim[:66]
    'With confidence 0.95, the training procedure is not (epsilon, 0)-d'
    """
    check_at_least(0, seed=seed)
    pairs = _pairs(probabilities, labels, proxies, reference)
    warnings = _class_warnings(pairs)
    if not tossed:
        warnings += _agreement_warnings(pairs)
    # Before the coins: where a model knows a rounded law, a score tells the side of its record, so
    # that equal ones stand on one side, although no record is a copy.
    warnings += tie_warnings(find_ties("probabilities", pairs.leaning, ways=words.COPIES))
    # A coin for each record: which of its two labels is named first.
    first = np.random.default_rng([seed, _COINS]).random(pairs.labels.size) < 0.5
    scores = MembershipScores(pairs.leaning[first], -pairs.leaning[~first])
    played = audits_of(scores, None, guess, delta, confidence, "played", seed)
    audits = tuple(_about_labels(audit, tossed, guess) for audit in played)
    if unseen is not None:
        _check_measurable(unseen, tossed, delta, reference)
        others = _pairs(**unseen)
        measured = cast(LabelsResult, audits[0].result)
        result = _after_gap(measured, pairs, others, confidence, seed)
        audits = (replace(_MEASURED, result=result), *audits)
    return Audits(scores, audits, "played", reading=(*rounded(scores), *warnings), seed=seed)


def _check_measurable(
    unseen: Mapping[str, ArrayLike], tossed: bool, delta: float, reference: ArrayLike | None
) -> None:
    """Refuse (ValueError) unseen records that lack something, or whose gap has no meaning here."""
    expected = ["probabilities", "labels", "proxies"]
    if reference is not None:
        expected.append("reference")
    if sorted(unseen) != sorted(expected):
        raise ValueError(f"unseen: expected {', '.join(expected)}, got {', '.join(unseen)}")
    if tossed:
        raise ValueError("unseen: with tossed coins the proxies have no gap; leave one of the two")
    if delta > 0:
        raise ValueError(f"delta: with unseen records the bound is one at delta = 0, got {delta:g}")


def _pairs(
    probabilities: ArrayLike,
    labels: ArrayLike,
    proxies: ArrayLike,
    reference: ArrayLike | None = None,
) -> _Pairs:
    """The records whose two labels differ, from arguments as `audit_labels` takes them; a
    ValueError where these do not fit, or fewer than two records have two labels.
    """
    aligned = {"proxies": proxies, "probabilities": probabilities, "reference": reference}
    for name, values in aligned.items():
        check_index(name, values, labels)
    chances = _chances("probabilities", probabilities)
    true = _classes("labels", labels, chances)
    other = _classes("proxies", proxies, chances)
    # Logarithms of the model's probabilities, over the reference's if there is one; that of 0 is
    # finite by the smallest number.
    ratios = np.log(np.maximum(chances, np.finfo(float).tiny))
    if reference is not None:
        usual = _chances("reference", reference)
        if usual.shape != chances.shape:
            raise ValueError(f"reference: expected shape {chances.shape}, got {usual.shape}")
        ratios -= np.log(np.maximum(usual, np.finfo(float).tiny))
    rows = np.flatnonzero(true != other)
    if rows.size < 2:
        raise ValueError(f"proxies: {rows.size} of {true.size} differ from the label, 2 are needed")
    leaning = ratios[rows, true[rows]] - ratios[rows, other[rows]]
    return _Pairs(true[rows], other[rows], leaning, true.size, chances.shape[1])


def _chances(name: str, values: ArrayLike) -> FloatArray:
    """Probabilities of classes, a row for each record, shape (n, classes); a ValueError, which
    begins with ``name``, for other shapes, and rows that are no probabilities or do not sum to 1.
    """
    chances = as_floats(name, values)
    if chances.ndim != 2 or chances.shape[1] < 2:
        raise ValueError(
            f"{name}: expected shape (n, classes), of 2 classes or more, got {chances.shape}"
        )
    if not ((chances >= 0).all() and np.allclose(chances.sum(axis=1), 1, atol=1e-3)):
        raise ValueError(
            f"{name}: expected rows of probabilities that sum to 1; give softmax of logits"
        )
    return chances


def _classes(name: str, values: ArrayLike, chances: FloatArray) -> IntArray:
    """Class numbers, one for each row of ``chances``, shape (n, classes); a ValueError, which
    begins with ``name``, for another count of them, and numbers that are no class.
    """
    numbers, (rows, classes) = check_counts(name, values), chances.shape
    if numbers.shape != (rows,) or numbers.max(initial=0) >= classes:
        raise ValueError(f"{name}: expected {rows} class numbers from 0 to {classes - 1}")
    return numbers


def _agreement_warnings(pairs: _Pairs) -> tuple[str, ...]:
    """A warning where proxies equal labels in fewer records than chance explains if both are draws
    of one law; none elsewhere.

    Two draws of one law of k classes are equal with probability 1 / k at least, so that the count
    is at least a binomial one.
    """
    equal = pairs.records - pairs.labels.size
    chance = float(bdtr(equal, pairs.records, 1 / pairs.classes))
    if chance >= DOUBTFUL:
        return ()
    return (words.seldom_equal(equal, pairs.records, chance),)


def _class_warnings(pairs: _Pairs) -> tuple[str, ...]:
    """A warning where a class is the label much more often than the proxy, or less, among records
    whose two labels differ: under one law both have the same chance. No warning elsewhere.

    Raises:
        ValueError: Counts of a class that are so uneven that it must be another law.
    """
    sides: dict[int, tuple[int, int]] = {}  # by class, how often label, and how often proxy
    for number in np.union1d(pairs.labels, pairs.proxies).tolist():
        as_label = int((pairs.labels == number).sum())
        sides[number] = as_label, int((pairs.proxies == number).sum())
    chances = {number: fair_coin_p_value(*side) for number, side in sides.items()}
    worst = min(chances, key=lambda number: (chances[number], number))
    counts = (worst, *sides[worst], chances[worst])
    # Times the number of classes, since the worst of all is looked at (Bonferroni).
    if chances[worst] * len(sides) < IMPLAUSIBLE:
        sentence = words.uneven_class(*counts)
        raise ValueError(f"{sentence}; draw proxies from the law of the labels given the features")
    if chances[worst] * len(sides) < DOUBTFUL:
        return (words.uneven_class_warning(*counts),)
    return ()


def _assumptions(result: AuditResult, coins: str, guess: Guess) -> tuple[str, ...]:
    """What the result of an audit of scores takes for granted if its scores are those of labels and
    proxies: of these the sentence ``coins``. ``guess`` is that of the main audit.
    """
    if isinstance(result, OutputSetResult):
        return output_set_assumptions(coins, result.delta, result.guess)
    search = cast(OneRunResult, result).search
    return one_run_assumptions(coins, guess, search)


def _about_labels(audit: ScoreAudit, tossed: bool, guess: Guess) -> ScoreAudit:
    """An audit of scores, now with the claim and the conditions of an audit of labels.

    Its coins are its own and give no warning. Where none was ``tossed`` before training it becomes
    a measurement of epsilon plus the gap. ``guess`` is that of the main audit.
    """
    result = audit.result
    if result is None:
        return audit
    basis: words.Basis = "tossed" if tossed else "law"
    epsilon = result.epsilon or 0.0
    bound = lower_bound_claim(
        epsilon, result.delta, result.confidence or 0.0, "label", ceiling=result.ceiling
    )
    facts: dict[str, Any] = {
        "claim": bound,
        "adjacency": "label",
        "condition": words.CONDITIONS[basis],
        "assumptions": _assumptions(result, words.ASSUMPTIONS[basis], guess),
        # Those of the coins, which were drawn here; the sentences of refusals are added again.
        "warnings": (),
    }
    if tossed:
        return replace(audit, result=replace(result, **facts))
    if epsilon > 0:
        facts["claim"] = words.claim_with_gap(epsilon, result)
    facts["epsilon"] = None
    kept = {field.name: getattr(result, field.name) for field in fields(AuditResult)}
    measured = LabelsResult(**{**kept, **facts}, epsilon_plus_gap=epsilon)
    return replace(audit, kind="measurement", result=measured)


def _after_gap(
    measured: LabelsResult, pairs: _Pairs, others: _Pairs, confidence: float, seed: int
) -> LabelsResult:
    """The bound on epsilon, nats, that is left of ``measured`` after the gap of the proxies among
    unseen records.

    ``pairs`` are the labels and proxies of the audited records, ``others`` those of unseen ones;
    both bounds hold together at ``confidence``.
    """
    # Without a leak a guess is right with some chance g; with one its odds are at most e =
    # exp(epsilon) times as large, so that it is right with at most g e / (1 - g + g e). Over fixed
    # guesses the mean of this is at most its value at the mean of g, and the count of right guesses
    # has at most the tail of a binomial of that mean (Hoeffding 1956). So the log-odds refuted
    # here, less those of the mean of g, bound epsilon. Half of the error is for each of the two,
    # divided by the numbers of guesses tried.
    rng = np.random.default_rng([seed, _TIES])
    right, right_unseen = pairs.surest(rng), others.surest(rng)
    counts = _counts(right.size, right_unseen.size)
    level = (1 - confidence) / (2 * len(counts))
    bounds: list[dict[str, Any]] = []
    ceilings: list[float] = []
    for guesses, gap_guesses in counts:
        correct = int(right[:guesses].sum())
        gap_correct = int(right_unseen[:gap_guesses].sum())
        gap = max(0.0, float(logit(upper_rate(gap_correct, gap_guesses, level))))
        # Of epsilon plus the gap: the bound of this count, and that of no wrong guess.
        together, most = one_run_epsilon([correct, guesses], guesses, confidence=1 - level).tolist()
        ceilings.append(max(0.0, most - gap))
        bounds.append(
            {
                "epsilon": max(0.0, together - gap),
                "epsilon_plus_gap": together,
                "gap": gap,
                "guesses": guesses,
                "correct": correct,
                "gap_guesses": gap_guesses,
                "gap_correct": gap_correct,
            }
        )
    best = max(bounds, key=lambda bound: bound["epsilon"])
    ceiling = max(ceilings)
    return replace(
        measured,
        **best,
        ceiling=ceiling,
        claim=lower_bound_claim(best["epsilon"], 0.0, confidence, "label", ceiling=ceiling),
        condition=words.CONDITIONS["unseen"],
        assumptions=words.assumptions_after_gap(len(counts)),
        notes=(ceiling_note(pairs.labels.size, ceiling),),
    )


def _counts(guesses: int, unseen: int) -> list[tuple[int, int]]:
    """Pairs of numbers of guesses, on training records and on unseen ones: all of both, a half, a
    quarter and so on, while both have eight or more; a ValueError where there are none of either.
    """
    if min(guesses, unseen) == 0:
        raise ValueError(
            f"unseen: {guesses} training records and {unseen} unseen ones have two labels that the "
            "model tells apart; some of each are needed"
        )
    counts = [(guesses, unseen)]
    left, left_unseen = guesses // 2, unseen // 2
    while min(left, left_unseen) >= _FEWEST:
        counts.append((left, left_unseen))
        left, left_unseen = left // 2, left_unseen // 2
    return counts
