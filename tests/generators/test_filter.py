import uuid

import numpy as np
import pytest
from scipy.stats import norm

from paperlib.generators.identifiers import KINDS, Identifier
from paperlib.generators.identifiers import filter as filtering
from paperlib.generators.identifiers.filter import (
    FIXED_PLACE,
    blind_ranks,
    drop_duplicates,
    filter_identifiers,
    held_out_scores,
    ngram_counts,
    shape_features,
)
from paperlib.generators.identifiers.scan import as_identifier
from tests.generators.true_identifiers import random_ones

COUNT = 15


def identifiers(kind, count, seed=0):
    return [as_identifier(value) for value in random_ones(kind, count, seed)]


def null_band(sets, false_failure=1e-7):
    """Where the mean of shares lies if nothing can be told: see `report` of the filter for the
    factor 2.

    Shares are uniform on 0, 1/m, ..., 1, with variance (m + 2) / (12 m).
    """
    spread = np.sqrt(2 * (COUNT + 2) / (12 * COUNT) / sets)
    return 0.5 - norm.isf(false_failure) * spread, 0.5 + norm.isf(false_failure) * spread


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind not in ("sha1", "sha256", "sha512")]
)
def test_no_classifier_tells_random_true_ones_from_generated(kind):
    count = {"ssh_ed25519": 40, "ssh_rsa": 25}.get(kind, 60)
    low, high = null_band(count)
    for baseline, shares in blind_ranks(identifiers(kind, count), COUNT, 4, 1).items():
        assert low < shares.mean() < high, baseline


@pytest.mark.parametrize("kind", ["uuid", "ethereum"])
def test_the_same_test_catches_generators_that_forget_what_must_be_kept(kind, monkeypatch):
    def forgetful(one, count, seed):
        rng = np.random.default_rng([seed, len(one.value), one.start, int(one.value[-6:], 16)])
        digits = [rng.bytes(20).hex() for _ in range(count)]
        if kind == "ethereum":  # no checksum
            return ["0x" + "".join(rng.choice([d, d.upper()]) for d in text) for text in digits]
        # no version bits
        return [f"{d[:8]}-{d[8:12]}-{d[12:16]}-{d[16:20]}-{d[20:32]}" for d in digits]

    monkeypatch.setattr(filtering, "generate_identifiers", forgetful)
    found = identifiers(kind, 60)
    if kind == "ethereum":  # n-grams cannot see Keccak: what tells is the case alone
        found = [Identifier(one.kind, one.value.lower(), 0, 42) for one in found]
    shares = blind_ranks(found, COUNT, 4, 1).values()
    assert max(one.mean() for one in shares) > null_band(60)[1]


def look_alikes(count):
    """Values of two digits each: n-grams tell them, no single place does."""
    rng = np.random.default_rng(9)
    pairs = "".join(f"{a}{b}" for a, b in zip("0246813579acebdf", "13578fbd02469eca", strict=True))
    return [as_identifier("".join(rng.permutation(list(pairs)).tolist())) for _ in range(count)]


def test_look_alikes_are_dropped_and_true_ones_stay():
    true = identifiers("md5", 60)
    result = filter_identifiers([*true, true[0]], count=49, extreme=0.02, seed=3)
    assert result.dropped["duplicate"] == 1
    assert len(result.kept) >= 48
    assert list(result.kept) == [one for one in true if one in set(result.kept)]
    assert result.after["identifiers"].iloc[0] == len(result.kept)
    balanced = filter_identifiers(look_alikes(60), count=49, extreme=0.02, seed=3)
    assert balanced.before["auc"].max() > 0.9
    assert len(balanced.kept) <= 6


@pytest.mark.parametrize("count", [3, 12, 100])
def test_a_fixed_place_is_seen_in_any_number_of_values(count):
    rng = np.random.default_rng(count)
    same = [as_identifier(f"83a5e{rng.bytes(18).hex()[:27]}") for _ in range(count)]
    assert filter_identifiers(same, count=19, extreme=0.0).dropped == {FIXED_PLACE: count}
    digits = [as_identifier(uuid.UUID(bytes=rng.bytes(16), version=4).hex) for _ in range(count)]
    assert filter_identifiers(digits, count=19, extreme=0.0).dropped == {}


def test_fresh_values_of_a_small_group_stay():
    groups = [filter_identifiers(identifiers("sha1", 5, seed), count=5) for seed in range(100)]
    assert (
        sum(sum(one.dropped.values()) for one in groups) <= 2
    )  # a group loses any with probability 0.001


def test_few_of_a_kind_stay_unjudged_and_duplicates_differ_in_more_than_case():
    few = identifiers("uuid", 3)
    result = filter_identifiers([*identifiers("md5", 20), *few], count=19, extreme=0.0)
    assert result.unjudged == (
        "md5",
        "uuid",
    )  # of 19 generated values none is as rare as one in a hundred
    assert set(few) <= set(result.kept)
    assert result.dropped == {}
    upper = Identifier("md5", "D41D8CD98F00B204E9800998ECF8427E", 0, 32)
    lower = Identifier("md5", upper.value.lower(), 50, 82)
    assert drop_duplicates([upper, lower]) == [upper]
    links = [as_identifier("https://bit.ly/3xK9aQz"), as_identifier("https://bit.ly/3xk9AQZ")]
    assert drop_duplicates(links) == links


def test_batches_score_every_identifier_once(monkeypatch):
    found = identifiers("md5", 45)
    monkeypatch.setattr(filtering, "_BATCH_CHARACTERS", 20 * 32 * 6)
    assert {shares.shape for shares in blind_ranks(found, 5, 2, 0).values()} == {(45,)}


def test_ngrams_and_shapes_against_counting_by_hand_and_folds_hold_out_whole_sets():
    counts = ngram_counts(["abca", "b"]).toarray()
    assert counts.sum(axis=1).tolist() == [4 + 3 + 2, 1]
    assert counts[0, ord("a")] == 2
    assert counts[0, 128 + 128 * ord("a") + ord("b")] == 1
    assert counts[1, 128:].sum() == 0
    runs = shape_features(["aaab123", "zz"])[:, -5:]
    assert runs[0].tolist() == [2, 2, 0, 5, 2]  # a = a = a, then 1 < 2 < 3
    assert runs[1].tolist() == [1, 0, 0, 1, 1]
    texts = ["aa", "ab", "ba", "bb"] * 10
    found = np.tile([True, False, False, False], 10)
    folds, every = np.repeat(np.arange(10), 4), np.ones(40, dtype=bool)
    scores = held_out_scores("naive Bayes", texts, found, folds, learned=every)
    assert scores.reshape(10, 4).argmax(axis=1).tolist() == [0] * 10


def test_bad_requests_say_what_is_wrong():
    found = identifiers("md5", 20)
    for options, message in (
        ({"count": 0}, "count: expected 1 or more"),
        ({"folds": 1}, r"folds: expected a number in \[2, 20\]"),
        ({"extreme": 0.5}, r"extreme: expected a number in \[0, 0.5\)"),
    ):
        with pytest.raises(ValueError, match=message):
            filter_identifiers(found, **options)
