"""Does a trained model give away which labels it was trained on? Each true label against another
one.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from paperlib.audits.score_results import Audits
from paperlib.audits.scores import audit_scores
from paperlib.bounds import fair_coin_p_value
from paperlib.bounds.one_run.fair_coins import DOUBTFUL, IMPLAUSIBLE, coin_warnings
from paperlib.core import FloatArray, Guess, IntArray, MembershipScores, ScoreAudit
from paperlib.core.checks import as_floats, check_at_least, check_counts, check_index
from paperlib.words.claims import lower_bound_claim

_LAW = (
    "assumes that each proxy label has the law of the true one given the record's features: it "
    "speaks of replacing one label"
)
_TOSSED = (
    "assumes that a fair coin tossed before training decided which of two labels each record was "
    "trained with: it speaks of replacing one label"
)
_ASSUMPTIONS = {
    _LAW: "given the features, the label of each record and its proxy are independent draws from "
    "one law, independent of all other labels: a gap between the two laws counts as leakage",
    _TOSSED: "for each record a fair coin of its own, tossed before training, decided which of its "
    "two labels was trained on",
}


def audit_labels(
    probabilities: ArrayLike,
    labels: ArrayLike,
    proxies: ArrayLike,
    *,
    reference: ArrayLike | None = None,
    tossed: bool = False,
    delta: float = 0.0,
    confidence: float = 0.95,
    guess: Guess = "adaptive",
    seed: int = 0,
) -> Audits:
    """Lower-bound the epsilon of label privacy from one trained model's predictions on its training
    records.

    A coin names the two labels of each record in random order; the audit guesses from the model's
    probabilities which one was trained on. Records whose two labels are equal tell nothing and are
    left out.

    Guarantee:
        That of `audit_one_run` for replacing one label. Given the model the coins are as hidden as
        label privacy asks, since the two labels, and so the model, could have come the other way
        round.

    Args:
        probabilities: The model's probability of each class, shape (n, classes), rows that sum to
            1.
        labels: Class numbers that the records were trained with, shape (n,), from 0.
        proxies: Other class numbers, shape (n,), drawn from the law of the labels given the
            features without a look at the labels: by a second annotator, a known noise, or a model
            fitted to other records, whose errors count as leakage.
        reference: Probabilities that the proxies were drawn from, or of another model that never
            saw the labels: those of the model are judged in proportion to them, which helps where
            little leaks.
        tossed: A fair coin before training chose the label to train on, of two that are fixed; the
            other one is the proxy, and may be any label.
        delta, confidence, guess: As for `audit_scores`.
        seed: Seed of the coins and of random splits, 0 or more.

    Raises:
        ValueError: Shapes, values or sums that do not fit, no record with two labels, or a class
            that is the true label so often, or seldom, that the law of the proxies must be another
            one.

    Source:
        Observational audits of labels: arXiv:2511.14084. The bound is `audit_one_run`'s, the pairs
        are ours.

    >>> rng = np.random.default_rng(0)
    >>> labels, proxies = rng.integers(0, 2, (2, 400))
    >>> audit_labels(0.9 * np.eye(2)[labels] + 0.05, labels, proxies).headline.claim[:66]
    'With confidence 0.95, the training procedure is not (epsilon, 0)-d'
    """
    check_at_least(0, seed=seed)
    for name, given in {
        "proxies": proxies,
        "probabilities": probabilities,
        "reference": reference,
    }.items():
        check_index(name, given, labels)
    chances = _chances("probabilities", probabilities)
    own, other = (_classes(*one, chances) for one in (("labels", labels), ("proxies", proxies)))
    ratios = np.log(np.maximum(chances, np.finfo(float).tiny))
    if reference is not None:
        usual = _chances("reference", reference)
        if usual.shape != chances.shape:
            raise ValueError(f"reference: expected shape {chances.shape}, got {usual.shape}")
        ratios -= np.log(np.maximum(usual, np.finfo(float).tiny))
    two = np.flatnonzero(own != other)
    if two.size < 2:
        raise ValueError(f"proxies: {two.size} of {own.size} differ from the label, 2 are needed")
    doubts = _doubts(own[two], other[two])
    chance = float(bdtr(own.size - two.size, own.size, 1 / chances.shape[1]))
    if (
        not tossed and chance < DOUBTFUL
    ):  # two draws of any one law agree in 1 / classes of records at least
        doubts += (
            f"proxies: {own.size - two.size} of {own.size} equal the label, so few by chance "
            f"{chance:.2g} at most: proxies drawn to differ from it look like a leak; pairs that "
            "agree belong to the data",
        )
    differences = ratios[two, own[two]] - ratios[two, other[two]]
    first = np.random.default_rng([seed, 11]).random(two.size) < 0.5
    scores = MembershipScores(differences[first], -differences[~first])
    played = audit_scores(
        scores, delta=delta, confidence=confidence, guess=guess, design="played", seed=seed
    )
    drawn_here = coin_warnings(scores.member.size, scores.nonmember.size, "played")
    audits = tuple(_about_labels(one, _TOSSED if tossed else _LAW, drawn_here) for one in played)
    return replace(played, audits=audits, reading=(*played.reading, *doubts))


def _chances(name: str, values: ArrayLike) -> FloatArray:
    """Probabilities of classes, a row for each record."""
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
    """Class numbers, one for each row of probabilities."""
    numbers, (rows, classes) = check_counts(name, values), chances.shape
    if numbers.shape != (rows,) or numbers.max(initial=0) >= classes:
        raise ValueError(f"{name}: expected {rows} class numbers from 0 to {classes - 1}")
    return numbers


def _doubts(own: IntArray, other: IntArray) -> tuple[str, ...]:
    """A warning where a class is oftener the label or the proxy than one law gives; an error far
    beyond.
    """
    sides = {int(one): ((own == one).sum(), (other == one).sum()) for one in np.union1d(own, other)}
    chance, worst = min((fair_coin_p_value(*map(int, side)), one) for one, side in sides.items())
    said = (
        f"proxies: class {worst} is the label in {sides[worst][0]} records and the proxy in "
        f"{sides[worst][1]}, which one law gives with probability {chance:.2g}"
    )
    if chance * len(sides) < IMPLAUSIBLE:
        raise ValueError(f"{said}; draw proxies from the law of the labels given the features")
    return (f"{said}: another law looks like a leak",) if chance * len(sides) < DOUBTFUL else ()


def _about_labels(audit: ScoreAudit, condition: str, drawn_here: tuple[str, ...]) -> ScoreAudit:
    """The same audit, speaking of labels; its coins are its own and give no doubts."""
    if (result := audit.result) is None:
        return audit
    changed = replace(
        result,
        claim=lower_bound_claim(
            result.epsilon or 0.0,
            result.delta,
            result.confidence or 0.0,
            "label",
            ceiling=result.ceiling,
        ),
        adjacency="label",
        condition=condition,
        assumptions=(_ASSUMPTIONS[condition], *result.assumptions[1:]),
        warnings=tuple(text for text in result.warnings if text not in drawn_here),
    )
    return replace(audit, result=changed)
