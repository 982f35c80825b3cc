"""Audits of labels: true ones against proxies, with the rate of wrong bounds on known
mechanisms.
"""

import numpy as np
import pandas as pd
import pytest

from paperlib.audits import audit_labels
from tests.refusals import refused
from tests.validity.coverage import assert_rate_at_most

RNG = np.random.default_rng


def world(n, rng, classes=3):
    """The law of the labels given the features, and two independent draws of all labels."""
    law = rng.dirichlet(np.ones(classes), n)
    labels, proxies = ((law.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1) for _ in range(2))
    return law, labels, proxies


def largest_upper_end(scores, shown_true, rng, resamples=10):
    """PrivacyGuard's label number: of 100 thresholds the largest upper end of a bootstrap, no
    correction.
    """
    sides, rates = (scores[shown_true], scores[~shown_true]), np.linspace(0.01, 1, 100)
    size, found = min(map(len, sides)), []
    for _ in range(resamples):
        true, other = (rng.choice(side, size) for side in sides)
        cuts = np.unique(np.concatenate([true, other]))[::-1]
        tpr, fpr = (np.append(0, (side[:, None] >= cuts).mean(axis=0)) for side in (true, other))
        with np.errstate(divide="ignore", invalid="ignore"):
            epsilons = np.minimum(np.log(tpr) - np.log(fpr), np.log(size))
        at_fpr = np.maximum(np.searchsorted(fpr, rates, side="right") - 1, 0)
        at_tpr = np.minimum(np.searchsorted(tpr, rates), len(tpr) - 1)
        found.append(np.fmax(epsilons[at_fpr], epsilons[at_tpr]))
    return np.percentile(found, 97.5, axis=0).max()


def test_where_nothing_leaks_a_leak_is_shown_seldom_and_the_conditions_are_what_ensures_it():
    found, twin, published = [], [], []
    for seed in range(75):
        rng = RNG(seed)
        law, labels, proxies = world(300, rng)
        found.append(audit_labels(law, labels, proxies, seed=seed).headline.epsilon)
        if seed < 15:  # the labels' frequencies, not their law given the features
            of_no_features = rng.permutation(labels)
            twin.append(audit_labels(law, labels, of_no_features, seed=seed).headline.epsilon)
            coins = rng.random(300) < 0.5
            shown = np.where(coins, labels, proxies)
            published.append(largest_upper_end(law[np.arange(300), shown], coins, rng))
    assert_rate_at_most(0.05, np.count_nonzero(found), 75)
    refused("hits", assert_rate_at_most, 0.05, np.count_nonzero(twin), 15, error=AssertionError)
    assert np.median(twin) > 1
    assert np.median(published) > 1, "the largest upper end of many is no bound: the truth is 0"


@pytest.mark.parametrize("tossed", [False, True])
def test_randomized_response_is_bounded_by_its_epsilon(tossed):
    """The model repeats labels that were kept with the odds of epsilon = 1.5, so that this is the
    truth.
    """
    found, epsilon = [], 1.5
    for seed in range(60):
        rng = RNG(seed)
        labels, proxies = world(400, rng, classes=2)[1:]
        if tossed:  # two fixed labels, of which a coin chose one
            labels = rng.integers(0, 2, 400)
            proxies = 1 - labels
        kept = rng.random(400) < 1 / (1 + np.exp(-epsilon))
        noisy = np.where(kept, labels, 1 - labels)
        audit = audit_labels(
            0.8 * np.eye(2)[noisy] + 0.1, labels, proxies, tossed=tossed, seed=seed
        )
        found.append(audit.headline.epsilon)
    assert_rate_at_most(0.05, (np.array(found) > epsilon).sum(), 60)
    assert np.median(found) > 0.7


def test_labels_that_a_model_repeats_are_shown_with_a_claim_about_labels():
    law, labels, proxies = world(600, RNG(0))
    audits = audit_labels(0.7 * np.eye(3)[labels] + 0.1, labels, proxies)
    assert audits.headline.epsilon > 4
    assert len(audits.scores) == (labels != proxies).sum()
    for one in audits:
        assert "under replacing the label of one example for any epsilon below" in one.result.claim
        assert "law of the true one given the record's features" in one.result.condition
        assert "a gap between the two laws counts as leakage" in one.result.assumptions[0]
    assert "replacing one label" in str(audits)
    tossed = audit_labels(law, labels, proxies, tossed=True).headline
    assert "tossed before training decided which of two labels" in tossed.condition
    assert "decided which of its two labels was trained on" in tossed.assumptions[0]


def test_a_reference_shows_a_weak_leak():
    law, labels, proxies = world(1_000, RNG(1))
    tilted = law * np.exp(0.5 * np.eye(3)[labels])
    tilted /= tilted.sum(axis=1, keepdims=True)
    alone = audit_labels(tilted, labels, proxies).headline.epsilon
    assert audit_labels(tilted, labels, proxies, reference=law).headline.epsilon > alone + 2


def test_proxies_of_other_frequencies_are_doubted_or_refused_and_the_audit_s_own_coins_are_not():
    law, labels, proxies = world(60, RNG(2))
    audits = (audit_labels(law, labels, proxies, seed=seed) for seed in range(60))
    assert not any("fair coins" in text for one in audits for text in one.warnings)
    law, labels, _ = world(200, RNG(3), classes=2)
    mixed = np.where(RNG(4).random(200) < 0.85, world(200, RNG(5), classes=2)[1], 1)
    doubted = audit_labels(law, labels, mixed)
    assert any("is the label in" in text for text in doubted.warnings)
    refused("; draw proxies from the law", audit_labels, law, labels, np.ones(200, int))
    law, labels, proxies = world(400, RNG(6))
    said = "proxies: 0 of 400 equal the label"
    another = (labels + RNG(7).integers(1, 3, 400)) % 3
    assert any(said in text for text in audit_labels(law, labels, another).warnings)
    assert not any(
        "equal the label" in text for text in audit_labels(law, labels, proxies).warnings
    )
    assert not any(
        said in text for text in audit_labels(law, labels, another, tossed=True).warnings
    )


def test_a_mistake_is_named():
    given = {"probabilities": np.full((9, 2), 0.5), "labels": np.zeros(9), "proxies": np.ones(9)}
    backwards = pd.DataFrame(given["probabilities"])[::-1]
    given["labels"] = pd.Series(np.zeros(9, dtype=int))
    for name, wrong, message in (
        ("probabilities", np.zeros(9), r"probabilities: expected shape \(n, classes\)"),
        ("probabilities", 3 * np.ones((9, 2)), "sum to 1; give softmax of logits"),
        ("labels", np.arange(9), "labels: expected 9 class numbers from 0 to 1"),
        (
            "probabilities",
            np.ma.masked_less(np.full((9, 2), 0.5), 1),
            "probabilities: some values are masked",
        ),
        ("seed", -1, "seed: expected 0 or more"),
        ("proxies", np.zeros(9), "proxies: 0 of 9 differ from the label"),
        *((name, backwards, f"{name}: the rows stand") for name in ("probabilities", "reference")),
        ("reference", np.full((9, 4), 0.25), r"reference: expected shape \(9, 2\)"),
    ):
        refused(message, audit_labels, **given | {name: wrong})
