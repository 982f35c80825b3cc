"""Attacks on text: what they find in losses, and that they find nothing where there is nothing."""

from dataclasses import replace

import numpy as np
import pytest

from paperlib.attacks.learned import fit_best
from paperlib.attacks.learned.interface import AttackInputs, Labelled
from paperlib.attacks.learned.loss_summaries import (
    LossSummaries,
    sequences_and_summaries,
    summaries,
)
from paperlib.attacks.learned.text import TextClassifier
from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer

T = 6
FAST = TextClassifier(tokens=T, epochs=6)
ATTACKS = (LossSummaries(tokens=T, strength=0.1), FAST)


def game(n, *, shift=0.0, models=2, seed=0, word=None):
    """Losses of ``models`` models, those of the first lower by ``shift`` for the first half, the
    members.
    """
    rng = np.random.default_rng(seed)
    each = rng.gamma(2.0, 1.0, (n, 1, T)) + 0.3 * rng.normal(size=(n, models, T))
    if models:
        each[: n // 2, 0] -= shift
    tokens = rng.integers(0, 50, (n, T))
    if word is not None:
        tokens[: n // 2, 2] = word
    columns = np.concatenate([each.mean(axis=2, keepdims=True), each], axis=2).reshape(n, -1)
    return Labelled(AttackInputs(tokens, columns), np.arange(n) < n // 2)


def auc(attack, seed=0, **options):
    train, held, test = (game(n, seed=at, **options) for at, n in enumerate((400, 100, 400)))
    [fitted] = attack.fit(train, held, seeds=[seed])
    return test.value(fitted.scores(test.inputs))


@pytest.mark.parametrize("attack", ATTACKS, ids=["summaries", "classifier"])
def test_a_loss_lower_than_the_helpers_gives_members_away_and_nothing_else_does(attack):
    assert auc(attack, shift=0.4) > 0.9
    assert 0.4 < auc(attack, shift=0.0) < 0.6


def test_the_classifier_reads_tokens_the_summaries_do_not_and_labels_are_one_per_example():
    assert auc(FAST, word=7) > 0.8
    assert 0.4 < auc(ATTACKS[0], word=7) < 0.6
    assert auc(FAST, models=0, word=7) > 0.8
    assert auc(ATTACKS[0], models=0, word=7) == 0.5
    inputs = game(20).inputs
    with pytest.raises(
        ValueError, match=r"membership: expected shape \(20,\) as in inputs, got \(19,\)"
    ):
        Labelled(inputs, np.arange(19) < 9)
    others = Labelled(inputs, np.zeros(20, dtype=bool))
    with pytest.raises(
        ValueError, match=r"validation: expected 2 or more members and .*, got 0 and 20"
    ):
        fit_best(ATTACKS, game(20), others, criterion=lambda s, _: s[0])


def parts(n=100, models=2, **options):
    """A training part of ``n`` examples and a validation part of 60."""
    return [game(size, models=models, seed=at, **options) for at, size in enumerate((n, 60))]


@pytest.mark.parametrize("models", [0, 2])
def test_seeds_trained_together_are_trained_as_if_alone(models):
    train, held = parts(models=models, shift=0.3, word=7)
    shown = game(50, models=models, seed=2, shift=0.3).inputs
    together = FAST.fit(train, held, seeds=[4, 0])
    alone = [FAST.fit(train, held, seeds=[seed])[0] for seed in (4, 0)]
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one.scores(shown), other.scores(shown), atol=1e-4)
    assert np.abs(together[0].scores(shown) - together[1].scores(shown)).max() > 0.01


class Watched:
    """An attack that scores by its seed or, without one, by the first column; remembers what it was
    given.
    """

    name = "watched"

    def __init__(self, seed=None):
        self.seed, self.seeds, self.stopping = seed, [], None

    def fit(self, train, validation, *, seeds):
        self.seeds.append(tuple(seeds))
        self.stopping = validation
        return [Watched(seed) for seed in seeds]

    def scores(self, inputs):
        return inputs.losses[:, 0] + 100 * self.seed


def test_the_best_seed_is_kept_and_what_no_seed_changes_is_trained_once():
    def chosen(criterion, restarts=4, count=1):
        attacks = [Watched() for _ in range(count)]
        best = fit_best(attacks, *parts(20), criterion=criterion, restarts=restarts, seed=3)
        return best.seed, [attack.seeds for attack in attacks]

    assert chosen(lambda s, _: -abs(s.mean() - 500)) == (5, [[(3,), (4, 5, 6)]])
    assert chosen(lambda s, _: -s.mean()) == (3, [[(3,), (4, 5, 6)]])
    assert chosen(lambda s, _: s.mean(), restarts=1) == (3, [[(3,)]])
    assert chosen(lambda s, _: 0.0, restarts=3, count=2) == (3, [[(3,), (4, 5)], [(3,)]])
    train, held = parts(60, shift=0.4)
    [first, second] = ATTACKS[0].fit(train, held, seeds=[1, 2])
    assert first is second is ATTACKS[0].fit(train, held, seeds=[0])[0]
    best = fit_best(ATTACKS[:1], train, held, criterion=lambda s, _: s[0], restarts=5)
    assert best is first


def test_no_example_both_stops_a_training_and_chooses_it():
    train, held = parts(20)
    compared, attack = [], Watched()

    def criterion(scores, membership):
        compared.append((scores, membership))
        return 0.0

    fit_best([attack], train, held, criterion=criterion, restarts=2)
    stopping = attack.stopping
    assert stopping.criterion is criterion
    assert stopping.membership.sum() == 15
    for seed, (scores, membership) in zip((0, 1), compared, strict=True):
        assert (membership.sum(), membership.size) == (15, 30)
        both = np.concatenate([stopping.inputs.losses[:, 0], scores - 100 * seed])
        np.testing.assert_allclose(np.sort(both), np.sort(held.inputs.losses[:, 0]))


@pytest.mark.parametrize(("members", "others"), [(2, 2), (3, 2), (2, 3)])
def test_halves_have_both_kinds(members, others):
    inputs = AttackInputs(np.arange(members + others), np.zeros((members + others, 0)))
    flags = np.random.default_rng(0).permutation(np.arange(members + others) < members)
    halves = Labelled(inputs, flags).halves()
    for half in halves:
        assert half.membership.any()
        assert not half.membership.all()
        np.testing.assert_array_equal(half.membership, flags[half.inputs.examples])
    shown = np.concatenate([half.inputs.examples for half in halves])
    assert sorted(shown) == list(range(members + others))


def test_sequences_and_summaries_by_hand():
    data = AttackInputs([[0, 0]], [[1.5, 1.0, 2.0, 4.0, 3.0, 5.0]])
    sequences, found = sequences_and_summaries(data, 2)
    np.testing.assert_array_equal(sequences, [[[1.0, 2.0], [3.0, 5.0]]])
    assert found.shape == (1, 7 * 3)
    np.testing.assert_allclose(found[0, :7], [1.5, 0.5, 1.0, 1.25, 1.5, 1.75, 2.0])
    np.testing.assert_allclose(found[0, 14:], [2.5, 0.5, 2.0, 2.25, 2.5, 2.75, 3.0])
    rows = np.random.default_rng(0).normal(size=(9, 3, 7))
    ours = summaries(rows).reshape(9, 6, 7)
    quantiles = np.quantile(rows, [0, 0.25, 0.5, 0.75, 1], axis=2)
    np.testing.assert_allclose(ours[:, :3, 2:].transpose(2, 0, 1), quantiles)
    with pytest.raises(ValueError, match=r"1 \+ 4 columns"):
        sequences_and_summaries(data, 4)


def test_a_pretrained_model_can_read_the_tokens(tmp_path):
    tokenizer = train_tokenizer(["to be or not to be"], 260, context=16)
    new_language_model(LanguageModelConfig(width=16, heads=2, context=16), 260).save_pretrained(
        tmp_path
    )
    tokenizer.save_pretrained(tmp_path)
    reader = TextClassifier(tokens=T, pretrained=str(tmp_path), epochs=4, reader_rate=3e-3)
    assert auc(reader, word=7, models=1) > 0.8
    assert auc(replace(reader, precision="bfloat16"), word=7, models=1) > 0.8
    still = replace(reader, reader_rate=1e-12)  # a random reader that learns nothing
    assert auc(still, word=7, models=1) < 0.7
