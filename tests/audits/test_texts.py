"""Texts of known membership: what was inserted is found; no bound is given where the sides differ
anyway.
"""

import itertools
from math import prod

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertLMHeadModel

from paperlib import MembershipScores, audit_one_run, audit_texts, toss_coins
from paperlib.audits import audit_features
from paperlib.audits.features import AdditiveModel
from paperlib.audits.language.blind import BLIND_LEVEL, blind_table, look_alikes, times_of
from paperlib.audits.language.texts import TextsAudit
from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer
from paperlib.reproduction.data.text.insertions import read_insertions
from paperlib.reproduction.made_up.texts import write_insertions
from tests.insertions import WORDS, olmo, tokenizer
from tests.refusals import refused


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toaa")
    write_insertions(folder)
    return folder


def audited(some, model, **options):
    contexts = (some.member_contexts, some.nonmember_contexts)
    return audit_texts(
        model, tokenizer(), some.members, some.nonmembers, contexts=contexts, **options
    )


def test_inserted_suffixes_are_found_and_bounded(folder):
    some = read_insertions("random_8tok_16x", source=folder)
    whole = [before + text for before, text in zip(some.member_contexts, some.members, strict=True)]
    untrained = olmo([])
    result = audited(some, olmo(whole), reference=untrained, copies=some.copies)
    assert (result.attack, result.refused) == ("difference", "")
    assert result.quality.set_index("attack").loc["loss", "auc"] > 0.95
    assert result.audits.headline.epsilon > 1
    assert result.audits.headline.claim.endswith("One example is one text with all its 16 copies.")
    assert result.audits.condition.startswith("coins tossed by this audit chose who is shown")
    nothing = audited(some, untrained)
    assert (nothing.refused, nothing.audits.headline.epsilon) == ("", 0)
    assert str(nothing).startswith("ε ≥ 0.000")


def test_sides_that_differ_without_the_model_get_no_bound_and_token_numbers_are_texts(folder):
    result = audited(read_insertions("rare_1tok_16x", source=folder), olmo([]))
    assert result.audits is None
    said = "which tokens stand there alone tells members from non-members (AUC 1.000"
    assert result.refused.startswith(said)
    assert str(result).startswith("No bound: which tokens")
    texts = [f"text {number}" for number in range(40)]
    longer = [f"{text} and more words than the others have" for text in texts]
    assert "the number of tokens alone" in audit_texts(olmo([]), tokenizer(), longer, texts).refused
    texts = [f"i see {number} old friends at the house" for number in range(40)]
    tokens = tokenizer()(texts)["input_ids"]
    both = [
        audit_texts(olmo([]), tokenizer(), some[:20], some[20:]).scores for some in (texts, tokens)
    ]
    np.testing.assert_array_equal(both[0], both[1])


def sides(count, *, seed):
    """Members and non-members of one pool of random texts, and ids, by fair coins."""
    rng = np.random.default_rng(seed)
    texts = [[int(one) for one in row] for row in rng.integers(1, 60, (count, 12))]
    coins = toss_coins(count, seed=seed)
    ids = [np.array(coins.ids)[some].tolist() for some in (coins.included, ~coins.included)]
    return [[texts[int(one)] for one in some] for some in ids], ids, coins


def test_all_scores_together_bound_what_was_trained_on_and_nothing_else():
    (members, others), ids, coins = sides(150, seed=0)
    options = {"attack": "learned", "ids": ids, "coins": coins, "scoring": {"split": (4, 4)}}
    base = olmo([])
    result = audit_texts(olmo(members), tokenizer(), members, others, reference=base, **options)
    assert {"difference", "ez", "wbc"} <= set(result.scores)
    assert result.audits.headline.epsilon > 1.5
    assert result.audits.headline.claim.startswith(
        "With confidence 0.95, the training procedure is not"
    )
    assert "under adding or removing one example" in result.audits.headline.claim
    assert any(coins.commitment in text for text in result.audits.headline.assumptions)
    found = result.extractable(1000, 0.5)
    assert found[found["extractable"]]["member"].mean() > 0.9
    assert set(found.index) == set(coins.ids)
    nothing = audit_texts(base, tokenizer(), members, others, **options)
    assert (nothing.refused, nothing.audits.headline.epsilon) == ("", 0)
    with pytest.raises(
        ValueError, match="coins: 150 texts stand on the other side than their coin"
    ):
        audit_texts(base, tokenizer(), others, members, **{**options, "ids": ids[::-1]})


def test_an_order_learned_from_all_coins_would_break_the_level_that_the_audit_holds():
    """Scores that tell nothing, as correlated as those of one model are."""
    rng, trials, above, broken = np.random.default_rng(0), 12, 0, 0
    for seed in range(trials):
        member = rng.random(150) < 0.5
        scores = rng.normal(size=(150, 1)) + 0.5 * rng.normal(size=(150, 9))
        above += audit_features(scores, member, seed=seed).epsilon > 0
        model = AdditiveModel()
        model.fit(scores, member)
        fitted = model.predict_proba(scores)[:, 1]
        broken += audit_one_run(MembershipScores.from_labels(fitted, member)).epsilon > 0
    allowed = binom.isf(1e-6, trials, 0.05)
    assert above <= allowed < broken


def test_the_blind_test_keeps_its_level_and_finds_words_and_dates():
    rng, trials, found, broken = np.random.default_rng(1), 40, 0, 0
    for seed in range(trials):
        tokens, member = rng.integers(0, 200, (60, 15)).tolist(), rng.permutation(60) < 30
        counts = np.array([np.bincount(row, minlength=200) for row in tokens])
        seen = counts @ (
            counts[member].mean(0) - counts[~member].mean(0)
        )  # learned from all: no test
        found += blind_table(tokens, member, {"the date": rng.random(60)}, seed=seed)["apart"].any()
        broken += blind_table(tokens, member, {"seen": seen}, seed=seed)["apart"].any()
    allowed = binom.isf(1e-6, trials, BLIND_LEVEL)
    assert found <= allowed < broken
    member = np.arange(60) < 30
    words = [[*row, 7] if side else row for row, side in zip(tokens, member, strict=True)]
    days = times_of([f"2026-0{1 + side}-{1 + n % 28:02}" for n, side in enumerate(member)])
    table = blind_table(words, member, {"the date": days})
    assert table.set_index("signal")["apart"][["which tokens stand there", "the date"]].all()
    said = "dates: expected dates such as 2026-01-31, or only numbers, got 'x'"
    refused(said, times_of, ["2026-01-01", "x"])


def test_extraction_in_n_tries_is_that_of_every_outcome_enumerated():
    suffixes = pd.Series(np.log([0.55, 0.3, 0.15, 1e-12]), index=list("abcd"))
    scores = pd.DataFrame({"member": [True, False, True, True, False]}, index=list("abcde"))
    short = pd.Series([np.nan], index=["e"])
    audit = TextsAudit(scores, scores, scores, "loss", None, "", pd.concat([suffixes, short]))
    for tries in (1, 2, 3):
        found = audit.extractable(tries, 0.5)
        assert list(found.index) == list("abcd")
        for name in "abc":
            outcomes = (one for one in itertools.product("abc", repeat=tries) if name in one)
            chance = sum(prod(np.exp(suffixes[drawn]) for drawn in one) for one in outcomes)
            assert found.loc[name, "chance"] == pytest.approx(chance)
            assert (
                found.loc[name, "extractable"]
                == (chance >= 0.5)
                == (tries >= found.loc[name, "tries"])
            )
    assert found.loc["d", "tries"] == pytest.approx(np.log(2) * 1e12, rel=1e-3)
    refused(
        "no suffix was scored", TextsAudit(scores, scores, scores, "loss", None, "").extractable
    )


def words_of(count, seed=0):
    """Sentences of ten words, and a number."""
    rng = np.random.default_rng(seed)
    return [f"{' '.join(rng.choice(WORDS.split(), 10))} {at}" for at in range(count)]


def test_another_tokenizer_and_copies_but_for_spaces_or_case_are_named():
    texts = words_of(40)
    model = olmo(tokenizer()(texts)["input_ids"])
    assert audit_texts(model, tokenizer(), texts[:20], texts[20:]).audits.reading == ()
    other = train_tokenizer(["Der Himmel ist blau und die Erde ist rund"], 300, context=64)
    said = audit_texts(model, other, texts[:20], texts[20:]).audits.reading
    assert "model: most losses are above 6.55, that of guessed tokens" in said[0]
    members = [*texts[:20], *(text.capitalize() for text in texts[20:25])]
    others = [*texts[20:], *(f"{text} " for text in texts[:5])]
    said = audit_texts(model, tokenizer(), members, others).audits.reading
    assert said[0].startswith("10 texts stand on both sides, but for spaces")
    assert look_alikes(["caf\u00e9", "cafe\u0301"], np.array([True, False]))
    assert look_alikes(["cafe", "caf\u00e9", "cafe "], np.array([True, False, True])) == ()


def test_the_loss_of_the_reference_is_asked_whatever_is_audited():
    """Sentences against their words in another order: a model that knows the order tells them
    apart.
    """
    rng = np.random.default_rng(0)
    members = [[2, 9, 4, 7, 11, 5, 30 + at] for at in range(40)]
    others = [[*rng.permutation(row[:6]).tolist(), 70 + at] for at, row in enumerate(members)]
    model, base = olmo(members[:5] * 2, steps=20), olmo(members[5:10] * 2, steps=20)
    options = {"reference": base, "attack": "ratio", "scoring": {"attacks": ["ratio"]}}
    result = audit_texts(model, tokenizer(), members, others, **options)
    assert "loss of the reference alone tells" in result.refused
    assert set(result.scores) == {"ratio", "loss", "difference", "member"}


def test_bad_input_is_refused_in_one_line(folder):
    model = olmo([])
    rows, others = ([[1, second, n] for n in range(20)] for second in (2, 3))
    ids = (["a"] * 20, list("bcdefghijklmnopqrstu"))
    for members, options, words in (
        (rows[:3], {}, "expected 20 or more, got 3, 20"),
        (
            {f"mail {n}": row for n, row in enumerate(rows)},
            {},
            "members: expected a sequence of texts, got dict; put its texts in a list",
        ),
        (rows, {"contexts": (rows[:2], rows)}, "expected 20 of members, got 2"),
        (rows, {"attack": "guess"}, "attack"),
        ([[-1, 2, n] for n in range(20)], {}, "expected token numbers from 0 on"),
        ([[1, n, 9_999] for n in range(20)], {}, "gives token 9999"),
        (
            [*rows[:19], others[3]],
            {},
            r"1 texts stand there more than once, such as \[1, 3, 3\] \(2 times\)",
        ),
        (rows, {"copies": 0}, "copies"),
        (rows, {"attack": "ez"}, "reference: needed for ez"),
        (rows, {"coins": toss_coins(40, seed=0)}, "coins: name each text with ids"),
        (rows, {"ids": ids}, "40 rows hold 21 records"),
        (
            rows,
            {"dates": ([1], [2])},
            r"dates: expected as many as members .* \(20, 20\), got \(1, 1\)",
        ),
        (rows, {"attack": "learned", "guess": "both"}, "guess, plan: they are about one score"),
        (rows, {"unit": "user"}, "unit: texts are not averaged"),
        (rows, {"reference": model}, "reference: its losses are those of the model"),
        (rows, {"dates": (["05/06/20"] * 20, ["06/06/20"] * 20)}, "can be read in two ways"),
        (rows, {"dates": (["05/06/2020"] * 20, ["06/06/2020"] * 20)}, "can be read in two ways"),
    ):
        refused(words, audit_texts, model, tokenizer(), members, others, **options)
    canaries = toss_coins(40, seed=0, copies=8)
    names = [
        np.array(canaries.ids)[some].tolist() for some in (canaries.included, ~canaries.included)
    ]
    texts = [[[1, 2, int(name)] for name in some] for some in names]
    options = {"ids": names, "coins": canaries, "copies": 4}
    refused(
        "copies: the coins say 8; leave it out", audit_texts, model, tokenizer(), *texts, **options
    )
    shape = BertConfig(vocab_size=700, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
    shape.initializer_range = 1.0
    bert = BertLMHeadModel(shape)
    refused(
        "model: in it a token sees those behind it", audit_texts, bert, tokenizer(), rows, others
    )
    assert bert.training


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("brought", ["", "<|endoftext|>"])
def test_start_tokens_that_stand_twice_are_a_fact_of_the_result_and_said_in_the_report(brought):
    texts = [f"Order {n} went to house {n * 7 % 100}." for n in range(100, 160)]
    np.random.default_rng(0).shuffle(texts)
    reads = train_tokenizer(texts, 300, context=64)
    start = (reads.bos_token, reads.bos_token_id)
    reads._tokenizer.post_processor = TemplateProcessing(
        single=f"{reads.bos_token} $A", special_tokens=[start]
    )
    config = LanguageModelConfig(width=16, layers=1, seed=0)
    model = new_language_model(config, len(reads))
    sides = [[brought + text for text in side] for side in (texts[:30], texts[30:])]
    result = audit_texts(model, reads, *sides)
    said = "60 of 60 texts began with start tokens twice"
    assert result.started_twice == (60 if brought else 0)
    assert (said in str(result)) == bool(brought)
    document = result.document(subject="a model")
    assert any(said in text for text in document.warnings) == bool(brought)
    assert ("60 texts began with start tokens twice" in document.html()) == bool(brought)
