"""Attacks on text: what they find in losses, and that they find nothing where there is nothing."""

import numpy as np
import pytest

from paperlib.attacks.learned import Views
from paperlib.attacks.learned.text import LossSummaries, TextClassifier, loss_sequences, summaries
from paperlib.core import MembershipScores
from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer

T = 6
FAST = TextClassifier(tokens=T, epochs=6)
ATTACKS = (LossSummaries(tokens=T, strength=0.1), FAST)


def views(n, *, shift=0.0, models=2, seed=0, word=None):
    """Losses of ``models`` models, those of the first lower by ``shift`` for the first half, the members."""
    rng = np.random.default_rng(seed)
    each = rng.gamma(2.0, 1.0, (n, 1, T)) + 0.3 * rng.normal(size=(n, models, T))
    if models:
        each[: n // 2, 0] -= shift
    tokens = rng.integers(0, 50, (n, T))
    if word is not None:
        tokens[: n // 2, 2] = word
    columns = np.concatenate([each.mean(axis=2, keepdims=True), each], axis=2).reshape(n, -1)
    return Views(tokens, columns), np.arange(n) < n // 2


def auc(attack, seed=0, **options):
    (train, flags), (held, held_flags), (test, test_flags) = (
        views(n, seed=at, **options) for at, n in enumerate((400, 100, 400))
    )
    fitted = attack.fit(train, flags, validation=held, validation_membership=held_flags, seed=seed)
    scores = fitted.scores(test)
    return MembershipScores(scores[test_flags], scores[~test_flags]).auc()


@pytest.mark.parametrize("attack", ATTACKS, ids=["summaries", "classifier"])
def test_a_loss_lower_than_the_helpers_gives_members_away_and_nothing_else_does(attack):
    assert auc(attack, shift=0.4) > 0.9
    assert 0.4 < auc(attack, shift=0.0) < 0.6


def test_the_classifier_reads_tokens_and_the_summaries_do_not():
    assert auc(FAST, word=7) > 0.8
    assert 0.4 < auc(ATTACKS[0], word=7) < 0.6
    assert auc(FAST, models=0, word=7) > 0.8
    assert auc(ATTACKS[0], models=0, word=7) == 0.5


def test_seeds_repeat_and_matter():
    first, again, other = (
        FAST.fit(*views(100), validation=views(40, seed=1)[0], validation_membership=views(40)[1], seed=seed)
        for seed in (0, 0, 1)
    )
    shown = views(30, seed=2)[0]
    np.testing.assert_array_equal(first.scores(shown), again.scores(shown))
    assert (first.scores(shown) != other.scores(shown)).any()


def test_sequences_and_summaries_by_hand():
    data = Views([[0, 0]], [[1.5, 1.0, 2.0, 4.0, 3.0, 5.0]])
    sequences = loss_sequences(data, 2)
    np.testing.assert_array_equal(sequences, [[[1.0, 2.0], [3.0, 5.0]]])
    found = summaries(sequences)
    assert found.shape == (1, 7 * 3)
    np.testing.assert_allclose(found[0, :7], [1.5, 0.5, 1.0, 1.25, 1.5, 1.75, 2.0])
    np.testing.assert_allclose(found[0, 14:], [2.5, 0.5, 2.0, 2.25, 2.5, 2.75, 3.0])
    with pytest.raises(ValueError, match=r"1 \+ 4 columns"):
        loss_sequences(data, 4)


def test_a_pretrained_model_can_read_the_tokens(tmp_path):
    tokenizer = train_tokenizer(["to be or not to be"], 260, context=16)
    new_language_model(LanguageModelConfig(width=16, heads=2, context=16), 260).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    reader = TextClassifier(tokens=T, pretrained=str(tmp_path), epochs=4)
    assert auc(reader, word=7, models=1) > 0.8
