"""Texts of known membership: what was inserted is found; no bound is given where the sides differ anyway."""

import numpy as np
import pytest

from paperlib import audit_texts
from paperlib.data.made_up.texts import write_insertions
from paperlib.data.text.insertions import read_insertions
from tests.insertions import olmo, tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toaa")
    write_insertions(folder)
    return folder


def audited(some, model, **options):
    contexts = (some.member_contexts, some.nonmember_contexts)
    return audit_texts(model, tokenizer(), some.members, some.nonmembers, contexts=contexts, **options)


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
    assert result.refused.startswith(
        "which tokens stand there alone tells members from non-members (AUC 1.000"
    )
    assert str(result).startswith("No bound: which tokens")
    texts = [f"text {number}" for number in range(40)]
    longer = [f"{text} and more words than the others have" for text in texts]
    assert "the number of tokens alone" in audit_texts(olmo([]), tokenizer(), longer, texts).refused
    texts = [f"i see {number} old friends at the house" for number in range(40)]
    tokens = tokenizer()(texts)["input_ids"]
    both = [audit_texts(olmo([]), tokenizer(), some[:20], some[20:]).scores for some in (texts, tokens)]
    np.testing.assert_array_equal(both[0], both[1])


def test_bad_input_is_refused_in_one_line(folder):
    model = olmo([])
    rows, others = ([[1, second, n] for n in range(20)] for second in (2, 3))
    for members, options, words in (
        (rows[:3], {}, "expected 20 or more, got 3, 20"),
        (rows, {"contexts": (rows[:2], rows)}, "expected 20 of members, got 2"),
        (rows, {"attack": "guess"}, "attack"),
        ([[-1, 2, n] for n in range(20)], {}, "expected token numbers from 0 on"),
        ([[1, n, 9_999] for n in range(20)], {}, "gives token 9999"),
        ([*rows[:19], others[3]], {}, r"1 texts stand there more than once, such as \[1, 3, 3\] \(2 times\)"),
        (rows, {"copies": 0}, "copies"),
    ):
        with pytest.raises(ValueError, match=words):
            audit_texts(model, tokenizer(), members, others, **options)
