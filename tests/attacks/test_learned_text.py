"""Attacks on text: what they find in losses, and that they find nothing where there is nothing."""

import numpy as np
import pytest

from paperlib.attacks.learned import AttackInputs, fit_best
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
    return AttackInputs(tokens, columns), np.arange(n) < n // 2


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


def fitting(n=100, models=2, **options):
    """Arguments of ``fit`` but the seed."""
    (train, flags), (held, held_flags) = (
        views(size, models=models, seed=at, **options) for at, size in enumerate((n, 60))
    )
    return (train, flags), {"validation": held, "validation_membership": held_flags}


@pytest.mark.parametrize("models", [0, 2])
def test_seeds_trained_together_are_trained_as_if_alone(models):
    (train, flags), held = fitting(models=models, shift=0.3, word=7)
    shown = views(50, models=models, seed=2, shift=0.3)[0]
    together = FAST.fit_seeds(train, flags, **held, seeds=[4, 0])
    alone = [FAST.fit(train, flags, **held, seed=seed) for seed in (4, 0)]
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one.scores(shown), other.scores(shown), atol=1e-4)
    assert np.abs(together[0].scores(shown) - together[1].scores(shown)).max() > 0.01


class Counted:
    """Trees of luck: scores by the seed; counts how often it is trained."""

    name = "luck"

    def __init__(self):
        self.seeds = []

    def fit(self, train, membership, *, validation, validation_membership, seed):
        self.seeds.append(seed)
        return Lucky(seed)


class Together(Counted):
    def fit_seeds(self, train, membership, *, validation, validation_membership, seeds):
        self.seeds.append(tuple(seeds))
        return [Lucky(seed) for seed in seeds]


class Lucky:
    def __init__(self, seed):
        self.seed = seed

    def scores(self, views):
        return np.full(len(views), float(self.seed))


@pytest.mark.parametrize(
    ("attack", "trained"),
    [(Counted(), [3, 4, 5, 6]), (Together(), [3, (4, 5, 6)])],
    ids=["one by one", "at once"],
)
def test_the_best_seed_is_kept_however_it_is_trained(attack, trained):
    (train, flags), held = fitting(20)
    best = fit_best([attack], train, flags, **held, criterion=lambda s, _: -abs(s[0] - 5), restarts=4, seed=3)
    assert best.seed == 5
    assert attack.seeds == trained
    first = fit_best([attack], train, flags, **held, criterion=lambda s, _: -s[0], restarts=4, seed=3)
    assert first.seed == 3
    alone = fit_best([attack], train, flags, **held, criterion=lambda s, _: s[0], restarts=1, seed=3)
    assert alone.seed == 3


def test_what_no_seed_changes_is_trained_once():
    (train, flags), held = fitting(60, shift=0.4)
    assert ATTACKS[0].fit_seeds(train, flags, **held, seeds=[1, 2]) == []
    found = fit_best(ATTACKS[:1], train, flags, **held, criterion=lambda s, _: s[0], restarts=5)
    np.testing.assert_array_equal(
        found.scores(train), ATTACKS[0].fit(train, flags, **held, seed=0).scores(train)
    )


def test_sequences_and_summaries_by_hand():
    data = AttackInputs([[0, 0]], [[1.5, 1.0, 2.0, 4.0, 3.0, 5.0]])
    sequences = loss_sequences(data, 2)
    np.testing.assert_array_equal(sequences, [[[1.0, 2.0], [3.0, 5.0]]])
    found = summaries(sequences)
    assert found.shape == (1, 7 * 3)
    np.testing.assert_allclose(found[0, :7], [1.5, 0.5, 1.0, 1.25, 1.5, 1.75, 2.0])
    np.testing.assert_allclose(found[0, 14:], [2.5, 0.5, 2.0, 2.25, 2.5, 2.75, 3.0])
    rows = np.random.default_rng(0).normal(size=(9, 3, 7))
    ours = summaries(rows).reshape(9, 6, 7)
    np.testing.assert_allclose(
        ours[:, :3, 2:].transpose(2, 0, 1), np.quantile(rows, [0, 0.25, 0.5, 0.75, 1], axis=2)
    )
    with pytest.raises(ValueError, match=r"1 \+ 4 columns"):
        loss_sequences(data, 4)


def test_a_pretrained_model_can_read_the_tokens(tmp_path):
    tokenizer = train_tokenizer(["to be or not to be"], 260, context=16)
    new_language_model(LanguageModelConfig(width=16, heads=2, context=16), 260).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    reader = TextClassifier(tokens=T, pretrained=str(tmp_path), epochs=4)
    assert auc(reader, word=7, models=1) > 0.8
