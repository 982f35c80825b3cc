import numpy as np
import pytest
from scipy.stats import norm

from paperlib.generators.identifiers import Identifier, as_identifier
from paperlib.generators.identifiers import filter as filtering
from paperlib.generators.identifiers.blind import BASELINES, ngrams, out_of_fold, shapes
from paperlib.generators.identifiers.filter import blind_scores, drop_duplicates, filter_identifiers
from tests.generators.true_identifiers import random_ones

COUNT = 15


def identifiers(kind, count, seed=0):
    return [as_identifier(value) for value in random_ones(kind, count, seed)]


def null_band(sets, false_failure=1e-7):
    """Where the mean of shares lies if nothing can be told: see `BlindScores.report` for the factor 2.

    Shares are uniform on 0, 1/m, ..., 1, with variance (m + 2) / (12 m).
    """
    spread = np.sqrt(2 * (COUNT + 2) / (12 * COUNT) / sets)
    return 0.5 - norm.isf(false_failure) * spread, 0.5 + norm.isf(false_failure) * spread


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("md5", 60),
        ("sha1", 60),
        ("ethereum", 60),
        ("serial_version_uid", 60),
        ("uuid", 60),
        ("npm_digest", 60),
        ("wheel_digest", 60),
        ("bitcoin_base58", 60),
        ("bitcoin_bech32", 60),
        ("short_url", 60),
        ("git_short_hash", 60),
        ("ssh_ed25519", 40),
        ("ssh_rsa", 25),
    ],
)
def test_no_classifier_tells_random_true_ones_from_generated(kind, count):
    blind = blind_scores(identifiers(kind, count), count=COUNT, folds=4, seed=1)
    low, high = null_band(count)
    for baseline in BASELINES:
        assert low < blind.shares(baseline).mean() < high, baseline


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
    blind = blind_scores(found, count=COUNT, folds=4, seed=1)
    assert max(blind.shares(baseline).mean() for baseline in BASELINES) > null_band(60)[1]


def look_alikes(count):
    """Runs of digits in order, shifted, as people type them."""
    steps = "0123456789abcdef" * 4
    return [as_identifier(steps[at % 16 :][:28] + f"{7 * at:04x}") for at in range(count)]


def test_look_alikes_are_dropped_and_true_ones_stay():
    true, false = identifiers("md5", 60), look_alikes(30)
    result = filter_identifiers([*true, *false, true[0]], count=99, extreme=0.02, seed=3)
    kept = set(result.kept)
    assert result.dropped["duplicate"] == 1
    assert len(kept & set(false)) <= 3
    assert len(kept & set(true)) >= 48
    assert list(result.kept) == [one for one in [*true, *false] if one in kept]
    assert result.before["auc"].max() > 0.6
    assert not result.before["near_chance"].all()
    assert result.after["identifiers"].iloc[0] == len(kept)


def test_few_of_a_kind_stay_unjudged():
    few = identifiers("uuid", 3)
    result = filter_identifiers([*identifiers("md5", 20), *few], count=19, extreme=0.0)
    assert result.unjudged == ("uuid",)
    assert set(few) <= set(result.kept)
    assert result.dropped == {}


def test_batches_score_every_identifier_once(monkeypatch):
    found = identifiers("md5", 45)
    monkeypatch.setattr(filtering, "_BATCH_CHARACTERS", 20 * 32 * 6)
    blind = filtering._blind_in_batches(found, 5, 2, 0)
    assert blind.scores["naive Bayes"].shape == (45, 6)
    assert [len(one) for one in blind.generated] == [5] * 45


def test_folds_hold_out_whole_sets():
    texts = ["aa", "ab", "ba", "bb"] * 10
    found = np.tile([True, False, False, False], 10)
    scores = out_of_fold(
        "naive Bayes", texts, found, np.repeat(np.arange(10), 4), learned=np.ones(40, dtype=bool)
    )
    assert scores.reshape(10, 4).argmax(axis=1).tolist() == [0] * 10


def test_ngrams_against_counting_by_hand():
    counts = ngrams(["abca", "b"]).toarray()
    assert counts.sum(axis=1).tolist() == [4 + 3 + 2, 1]
    assert counts[0, ord("a")] == 2
    assert counts[0, 128 + 128 * ord("a") + ord("b")] == 1
    assert counts[1, 128:].sum() == 0


def test_shapes_of_texts():
    table = shapes(["aaab123", "zz"])
    runs = table[:, -5:]
    assert runs[0].tolist() == [2, 2, 0, 5, 2]  # a = a = a, then 1 < 2 < 3
    assert runs[1].tolist() == [1, 0, 0, 1, 1]


def test_duplicates_differ_in_more_than_case():
    upper = Identifier("md5", "D41D8CD98F00B204E9800998ECF8427E", 0, 32)
    lower = Identifier("md5", upper.value.lower(), 50, 82)
    assert drop_duplicates([upper, lower]) == [upper]
    links = [as_identifier("https://bit.ly/3xK9aQz"), as_identifier("https://bit.ly/3xk9AQZ")]
    assert drop_duplicates(links) == links


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"identifiers": []}, "identifiers: expected at least 20, got 0"),
        ({"count": 0}, "count: expected 1 or more"),
        ({"folds": 1}, r"folds: expected a number in \[2, 20\]"),
        ({"baselines": ("forest",)}, "'forest'"),
    ],
)
def test_bad_requests_say_what_is_wrong(change, message):
    given = {"identifiers": identifiers("md5", 20), "count": 2, **change}
    with pytest.raises(ValueError, match=message):
        blind_scores(given.pop("identifiers"), **given)


def test_bad_filters_say_what_is_wrong():
    with pytest.raises(ValueError, match="use drop_duplicates"):
        blind_scores(identifiers("md5", 20) * 2)
    with pytest.raises(ValueError, match=r"extreme: expected a number in \[0, 0.5\)"):
        filter_identifiers([], extreme=0.5)
    with pytest.raises(ValueError, match="different ones of some kind"):
        filter_identifiers(identifiers("md5", 5))
    with pytest.raises(ValueError, match="confidence"):
        blind_scores(identifiers("md5", 20), count=1).report(confidence=1.0)
