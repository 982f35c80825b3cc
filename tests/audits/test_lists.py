"""Identifiers in sorted lists follow from their neighbours: they are left out, and random ones
stay.
"""

import re
from itertools import permutations
from math import lgamma, log

import numpy as np
import pytest

from paperlib.audits import chat_questions
from paperlib.audits.language import lists
from paperlib.audits.language.corpus import corpus_identifiers
from paperlib.audits.language.language_model import audited_identifiers
from paperlib.bounds import audit_ranks
from paperlib.data.text.pieces import ReadLog
from paperlib.generators.identifiers import find_identifiers, generate_identifiers
from paperlib.words.audits.corpus import SORTED
from tests.refusals import refused

UUID7 = "0189d1f2-{:04x}-7abc-9dc0-{}"


def digests(rng, count, size=32):
    return [rng.bytes(size).hex() for _ in range(count)]


def locked(rng, packages, size, share=1.0):
    """Requirements with hashes, a share of the lists sorted."""
    texts = []
    for at in range(packages):
        some = digests(rng, size)
        some = sorted(some) if at < share * packages else some
        texts.append(
            f"pack{at}=={at}.1" + "".join(f" \\\n    --hash=sha256:{one}" for one in some) + "\n"
        )
    return texts


def read(found):
    """The bound from a reader that knows no value: the next one is the least above the one
    before.
    """
    ranks = []
    for one in found:
        before = re.findall("[0-9a-f]{64}", one.before)
        last, values = (
            before[-1] if before else "",
            [one.value, *generate_identifiers(one.value, 31, 0)],
        )
        ranks.append(1 + sum((x < last, x) < (one.value < last, one.value) for x in values))
    return audit_ranks(np.array(ranks), np.full(len(ranks), 32)).epsilon


def test_a_reader_who_knows_that_lists_are_sorted_has_a_bound_unless_they_are_left_out(monkeypatch):
    bounds = []
    for seed in range(3):
        texts = locked(np.random.default_rng([seed, 4]), 10, 20)
        with monkeypatch.context() as patch:
            patch.setattr(lists.CorpusLists, "sorted_values", set[str]())
            bounds.append(read(corpus_identifiers(texts, limit=60)))
    assert min(bounds) > 0.5
    for corpus in (texts, ["".join(texts)]):
        for entry in (corpus_identifiers, audited_identifiers, chat_questions):
            refused("no identifier .* 200 stand in lists that are sorted", entry, corpus)


@pytest.mark.parametrize(("packages", "size", "share"), [(60, 10, 0.2), (60, 2, 1.0)])
def test_some_sorted_lists_and_short_ones_are_seen_and_other_kinds_stay(packages, size, share):
    rng, log = np.random.default_rng(5), ReadLog()
    texts, others = locked(rng, packages, size, share), digests(rng, 30, 16)
    texts = ["".join(texts), texts[0], *(f"The sum is {one}." for one in others)]
    assert {one.value for one in corpus_identifiers(texts, log=log)} <= set(others)
    assert log.counts[SORTED] > 0.9 * packages * size


def test_random_identifiers_in_any_order_stay_also_behind_sorted_times():
    for seed in range(60):
        rng = np.random.default_rng([seed, 6])
        commits = "".join(f"commit {one}\nAuthor: A\n\n" for one in digests(rng, 12, 20))
        times = " ".join(UUID7.format(at, one) for at, one in enumerate(digests(rng, 12, 6)))
        log = ReadLog()
        assert corpus_identifiers([commits, commits, times], log=log)
        assert SORTED not in log.counts


def mean_e_value(copies=False):
    """Over all orders of five values, in lists of three and two, one of them twice."""
    values, total = generate_identifiers("83a5ef2c9d0b3e71f6a8c3d25b190e47", 5, 0), []
    for a, b, c, d, e in permutations(values):
        corpus, three = lists.CorpusLists(), f"{a} {b} {c}"
        for at, text in enumerate(
            [f"{three}\n{d}{' ' * 201}{three}", f"{d}, {e}", f"{d} {e}", three]
        ):
            corpus.add(
                text, [(one, one.value + copies * str(at)) for one in find_identifiers(text)]
            )
        total.append(np.exp(corpus.e_values["md5"]))
    return np.mean(total)


def test_the_e_value_has_mean_one_and_twins_have_not(monkeypatch):
    assert mean_e_value() == pytest.approx(1, rel=1e-9)
    assert mean_e_value(copies=True) > 1.1  # lists that share values, taken for independent
    monkeypatch.setattr(
        lists, "lgamma", lambda n: lgamma(n) + log(2)
    )  # two directions for the price of one
    assert mean_e_value() > 1.1
    monkeypatch.setattr(lists, "lgamma", lambda _: 0.0)  # no n!
    assert mean_e_value() < 0.9
