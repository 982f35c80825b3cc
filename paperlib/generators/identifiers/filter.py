"""Dropping look-alikes as in the paper's Appendix A, and a test of the kept identifiers."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.stats import binom, norm
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

from paperlib.core.checks import check_at_least, check_in
from paperlib.generators.identifiers.kind import Identifier
from paperlib.generators.identifiers.kinds import KINDS
from paperlib.generators.identifiers.scan import generate_identifiers

FIXED_PLACE = "same character at one place too often"
_FEWEST = 20
# Chance that a kind of fresh values loses any, in each of two tests of fixed places.
_FIXED_LEVEL = 5e-4
_LEARNED = 15  # generated values of each identifier that classifiers learn from; all are scored
_BATCH_CHARACTERS = 6_000_000
# Classifiers on character n-grams, which know nothing of any model.
BASELINES = ("naive Bayes", "boosted trees", "logistic regression")
_TRIGRAMS = 1 << 15  # columns that three letters in a row are hashed to
_LETTERS = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, kw_only=True, eq=False)
class FilteredIdentifiers:
    """Kept identifiers in their order, why others were dropped, and blind AUCs before and after."""

    kept: tuple[Identifier, ...]
    # By reason: "duplicate", FIXED_PLACE, or the baseline that saw the difference.
    dropped: Mapping[str, int]
    # Kinds with fewer than 20 identifiers, or too few generated ones for `extreme`.
    unjudged: tuple[str, ...]
    before: pd.DataFrame  # `report` of all different identifiers
    after: pd.DataFrame  # of the kept ones, by classifiers fitted anew


def drop_duplicates(identifiers: Iterable[Identifier]) -> list[Identifier]:
    """The first of each value, in order; letter case is ignored where it carries no information."""
    first: dict[tuple[str, str], Identifier] = {}
    for identifier in identifiers:
        key = KINDS[identifier.kind].key(identifier.value)
        first.setdefault((identifier.kind, key), identifier)
    return list(first.values())


def blind_ranks(
    identifiers: Sequence[Identifier], count: int, folds: int, seed: int
) -> dict[str, NDArray[np.float64]]:
    """Rank of each identifier among its own ``count`` generated values, by each blind baseline.

    A baseline is a classifier of characters that knows nothing of any model. It was trained on
    other identifiers and values generated for them (one of ``folds`` of a cross-validation), and
    scores how genuine a value looks. The rank, shape (n,) for each name of ``BASELINES``, is the
    share of the generated values that look less genuine, ties half: 1 where the identifier looks
    more genuine than all. For a value from the source of the generated ones it is uniform on 0,
    1 / count, ..., 1, since the classifier never saw it and cannot tell it from them.

    Raises:
        ValueError: A ``count`` below 1, or ``folds`` below 2 or above the number of identifiers.
    """
    check_at_least(1, count=count)
    ranks: dict[str, list[NDArray[np.float64]]] = {name: [] for name in BASELINES}
    for group in _groups_that_fit(identifiers, count):
        check_in(f"[2, {len(group)}]", "folds", folds)
        for name, shares in _ranks_in_group(group, count, folds, seed).items():
            ranks[name].append(shares)
    return {name: np.concatenate(shares) for name, shares in ranks.items()}


def _groups_that_fit(identifiers: Sequence[Identifier], count: int) -> list[list[Identifier]]:
    """The identifiers, all of one kind, in groups of neighbours whose ``count`` generated values
    each fit into memory; mostly one group.
    """
    characters = (count + 1) * len(identifiers[0].value)  # of one identifier and its values
    size = max(_FEWEST, _BATCH_CHARACTERS // characters)
    groups = np.array_split(np.arange(len(identifiers)), max(1, len(identifiers) // size))
    return [[identifiers[index] for index in indices] for indices in groups]


def _ranks_in_group(
    group: Sequence[Identifier], count: int, folds: int, seed: int
) -> dict[str, NDArray[np.float64]]:
    """Rank of each identifier of a group among its own ``count`` generated values, shape (n,) for
    each baseline, by classifiers that learn from this group alone.
    """
    texts: list[str] = []
    for identifier in group:
        texts += [identifier.value, *generate_identifiers(identifier, count, seed)]
    # Each identifier is followed by its generated values, and all are in its fold.
    position = np.tile(np.arange(count + 1), len(group))  # 0 is the identifier itself
    fold_of_each = np.random.default_rng(seed).permutation(len(group)) % folds
    fold = np.repeat(fold_of_each, count + 1)  # of each text
    ranks: dict[str, NDArray[np.float64]] = {}
    for name in BASELINES:
        scores = held_out_scores(name, texts, position == 0, fold, learned=position <= _LEARNED)
        genuine, generated = np.split(scores.reshape(-1, count + 1), [1], axis=1)
        ranks[name] = ((generated < genuine) + 0.5 * (generated == genuine)).mean(axis=1)
    return ranks


def held_out_scores(
    baseline: str,
    texts: list[str],
    genuine: NDArray[np.bool_],
    fold: NDArray[np.int64],
    *,
    learned: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Scores (N,) of ASCII texts by a blind baseline, higher for what looks ``genuine``.

    The texts of each fold are scored by a classifier that was trained on the ``learned`` texts of
    all other folds. ``genuine``, ``fold`` and ``learned`` have shape (N,).
    """
    features: Any = shape_features(texts) if baseline == "boosted trees" else ngram_counts(texts)
    labels = genuine.astype(np.int64)
    score = {
        "naive Bayes": _naive_bayes_scores,
        "boosted trees": _boosted_tree_scores,
        "logistic regression": _logistic_scores,
    }[baseline]
    scores = np.empty(len(texts))
    for number in np.unique(fold).tolist():
        held = fold == number
        train = (fold != number) & learned
        scores[held] = score(features[train], labels[train], features[held])
    return scores


def _naive_bayes_scores(x: Any, y: NDArray[np.int64], held: Any) -> NDArray[np.float64]:
    """Log odds of counts ``held`` to be found, learned from x and y."""
    chances: Any = MultinomialNB().fit(x, y).predict_log_proba(held)
    return chances[:, 1] - chances[:, 0]


def _boosted_tree_scores(x: Any, y: NDArray[np.int64], held: Any) -> NDArray[np.float64]:
    """Scores of features ``held``, learned from x and y with both labels of equal weight."""
    trees = HistGradientBoostingClassifier(max_iter=50, max_leaf_nodes=8, random_state=0)
    trees.fit(x, y, sample_weight=np.where(y == 1, (y == 0).sum() / (y == 1).sum(), 1.0))
    return trees.decision_function(held)


def _logistic_scores(x: Any, y: NDArray[np.int64], held: Any) -> NDArray[np.float64]:
    """Log odds of counts ``held``, learned from x and y with both labels of equal weight."""
    model = LogisticRegression(solver="liblinear", C=0.1, class_weight="balanced", max_iter=200)
    return model.fit(x, y).decision_function(held)


def report(ranks: Mapping[str, NDArray[np.float64]]) -> pd.DataFrame:
    """One row per baseline of `blind_ranks`: baseline, identifiers, auc (the mean rank), low, high
    (a 95 % interval), near_chance (1/2 in the interval).
    """
    z = float(norm.isf((1 - 0.95) / 2))
    shares = np.array(list(ranks.values()))  # ranks from 0 to 1, (baselines, identifiers)
    auc = shares.mean(axis=1)
    # Twice the variance of independent shares: each pair of identifiers meets twice, once with each
    # of them on the training side, and is judged nearly alike both times. On random values it is
    # 1.5 to 2.5 times.
    margin = z * (shares.std(axis=1, ddof=1) * np.sqrt(2 / shares.shape[1]))
    low, high = np.maximum(0.0, auc - margin), np.minimum(1.0, auc + margin)
    near = (low <= 0.5) & (high >= 0.5)
    columns = {
        "identifiers": shares.shape[1],
        "auc": auc,
        "low": low,
        "high": high,
        "near_chance": near,
    }
    return pd.DataFrame({"baseline": list(ranks), **columns})


def filter_identifiers(
    identifiers: Iterable[Identifier],
    *,
    extreme: float = 0.01,
    count: int = 127,
    folds: int = 5,
    seed: int = 0,
    evidence: float | None = None,
) -> FilteredIdentifiers:
    """Drop duplicates, values with a fixed place, and what a blind baseline ranks first or last in
    its kind.

    A place is fixed where an exact binomial test sees more values of a kind with one character than
    generated ones would have.

    Guarantee:
        One baseline drops a genuine identifier with probability at most ``2 * extreme``; fresh
        values of a kind lose any to fixed places with probability 0.001 at most. A model that was
        not trained on the kept ones still ranks them at random in the middle; extreme ranks can
        only become rarer.

    Args:
        extreme: Share at each end whose members are dropped, in [0, 0.5).
        count: Generated values for each.
        folds: Parts of the cross-validation.
        evidence: Confidence, in (0, 1), at which a baseline must find more extreme values than
            among fresh ones before it drops any; None drops them in any case, as the paper does.

    Raises:
        ValueError: ``extreme`` outside [0, 0.5).

    Source:
        Natural identifiers, Appendix A, which leaves folds and cut-offs open.
    """
    check_in("[0, 0.5)", "extreme", extreme)
    listed = list(identifiers)
    different = drop_duplicates(listed)
    dropped = Counter({"duplicate": len(listed) - len(different)})
    reasons: dict[Identifier, str] = {}
    unjudged: list[str] = []
    before: list[pd.DataFrame] = []
    after: list[pd.DataFrame] = []
    for kind in KINDS:
        group = [identifier for identifier in different if identifier.kind == kind]
        fixed = _fixed_places(group, seed)
        reasons |= dict.fromkeys(fixed, FIXED_PLACE)
        dropped.update({FIXED_PLACE: len(fixed)})
        group = _without(group, fixed)
        if group and (len(group) < _FEWEST or extreme * (1 + count) < 1):
            unjudged.append(kind)
        if len(group) < _FEWEST:
            continue
        ranks = blind_ranks(group, count, folds, seed)
        baselines = _extremes(group, ranks, count=count, extreme=extreme, evidence=evidence)
        reasons |= baselines
        dropped.update(baselines.values())
        before.append(report(ranks).assign(kind=kind))
        staying = _without(group, baselines)
        if len(staying) >= _FEWEST:
            ranks = blind_ranks(staying, count, folds, seed + 1)
            after.append(report(ranks).assign(kind=kind))
    return FilteredIdentifiers(
        kept=tuple(_without(different, reasons)),
        dropped={reason: number for reason, number in dropped.items() if number},
        unjudged=tuple(unjudged),
        before=pd.concat(before or [_NO_REPORT], ignore_index=True),
        after=pd.concat(after or [_NO_REPORT], ignore_index=True),
    )


_NO_REPORT = pd.DataFrame(
    columns=["baseline", "identifiers", "auc", "low", "high", "near_chance", "kind"]
)


def _without(group: list[Identifier], dropped: Container[Identifier]) -> list[Identifier]:
    """The identifiers that are not dropped, in their order."""
    return [identifier for identifier in group if identifier not in dropped]


def _extremes(
    group: list[Identifier],
    ranks: Mapping[str, NDArray[np.float64]],
    *,
    count: int,
    extreme: float,
    evidence: float | None,
) -> dict[Identifier, str]:
    """The identifiers to drop for their ranks, in the order of the group, with the first baseline
    that ranks them extremely.

    Args:
        ranks: Of each identifier, from 0 to 1, shape (n,) by baseline, as of `blind_ranks`.
        count: Generated values that each was ranked among.
        extreme: Share at each end that is dropped.
        evidence: Confidence, below 1, that more are extreme than among fresh values, without which
            a baseline drops none; None drops in any case.
    """
    baseline_of: dict[int, str] = {}
    for baseline, shares in ranks.items():
        # The chance of a rank as far from the middle, on its side, for a fresh value.
        chances = (1 + count * np.minimum(shares, 1 - shares)) / (1 + count)
        rare = np.flatnonzero(chances <= extreme)
        # The chance of as many extreme ranks in a group of fresh values.
        chance = float(binom.sf(rare.size - 1, chances.size, min(1.0, 2 * extreme)))
        if evidence is None or chance <= (1 - evidence) / len(ranks):
            for index in rare.tolist():
                baseline_of.setdefault(index, baseline)
    return {group[index]: baseline_of[index] for index in sorted(baseline_of)}


def _fixed_places(group: list[Identifier], seed: int) -> set[Identifier]:
    """The identifiers of a group of one kind with a character that too many have at one place, or a
    beginning that another has too; none of a single one. ``seed`` is of the fresh values that they
    are compared with.
    """
    if len(group) < 2:
        return set()
    values = [identifier.value for identifier in group]
    codes = letter_codes(values, max(map(len, values)))  # (n, width)
    chances = _letter_chances(group, codes.shape[1], seed)
    fixed = _have_frequent_letter(codes, chances) | _share_beginning(codes, values, chances)
    return {identifier for identifier, bad in zip(group, fixed, strict=True) if bad}


def _letter_chances(group: list[Identifier], width: int, seed: int) -> NDArray[np.float64]:
    """An upper limit on the chance of each ASCII letter at each place of generated values, shape
    (128, width).

    Generated values keep what their kind keeps: there a character tells nothing.
    """
    # Some 600 values of the whole group, 20 of each identifier at least; chosen.
    generated: list[str] = []
    for identifier in group:
        generated += generate_identifiers(identifier, max(20, 600 // len(group)), seed)
    codes = letter_codes(generated, width)
    shares = np.stack([(codes == letter).mean(axis=0) for letter in range(128)])
    # Three deviations above the share and a little more, since it is one of few values.
    limits = shares + 3 * np.sqrt(shares / len(codes)) + 3 / len(codes) * (shares > 0)
    return np.minimum(1, limits)


def _have_frequent_letter(
    codes: NDArray[np.uint8], chances: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which values, as ASCII codes (n, width), have a letter at a place where more values have it
    than its chance there, (128, width), allows by an exact binomial test, shape (n,).
    """
    counts = np.stack([(codes == letter).sum(axis=0) for letter in range(128)])
    level = _FIXED_LEVEL / max(1, np.count_nonzero(counts))  # shared by all letters that occur
    too_often = np.asarray(binom.sf(counts - 1, len(codes), chances) < level)
    return np.any(too_often[codes, np.arange(codes.shape[1])], axis=1)


def _share_beginning(
    codes: NDArray[np.uint8], values: list[str], chances: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which values have a beginning of another one that two fresh values hardly share, (n,).

    Args:
        codes: ASCII codes of the values, (n, width).
        values: The same as text.
        chances: Of each letter at each place of a fresh value, (128, width).
    """
    # In alphabetical order the longest common beginnings are those of neighbours.
    order = np.array(sorted(range(len(values)), key=lambda index: values[index]))
    before, behind = order[:-1], order[1:]
    equal = codes[behind] == codes[before]
    lengths = np.logical_and.accumulate(equal, axis=1).sum(axis=1)  # of the common beginnings
    # Two fresh values have the same letter at a place with the sum of the squared chances, and the
    # same beginning with the product over its places. Any of all pairs may share one.
    equal_at_place = np.minimum(1, (chances**2).sum(axis=0))
    equal_up_to = np.concatenate([[1.0], np.cumprod(equal_at_place)])  # by length, from 0
    pairs = len(values) ** 2 / 2
    is_rare = pairs * equal_up_to[lengths] < _FIXED_LEVEL
    shares = np.zeros(len(values), dtype=bool)
    shares[behind[is_rare]] = True
    shares[before[is_rare]] = True
    return shares


def ngram_counts(texts: list[str]) -> csr_array:
    """Counts of one, two and three characters in a row, sparse, shape (N, 128 + 128² + 2¹⁵).

    Columns are the 128 ASCII characters, pairs of these, and triples, which are hashed.
    """
    lengths = np.array([len(text) for text in texts])
    first = np.frombuffer("".join(texts).encode("ascii"), dtype=np.uint8).astype(np.int64)
    row = np.repeat(np.arange(len(texts)), lengths)
    second, third = np.roll(first, -1), np.roll(first, -2)
    two = 128 + 128 * first + second
    # Odd factors, chosen.
    three = 128 + 128**2 + (first * 16_807 + second * 1_299_721 + third * 40_503) % _TRIGRAMS
    # Letters from each one to the end of its text: pairs and triples do not reach into the next.
    to_the_end = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(first))
    begins_pair = to_the_end > 1
    begins_triple = to_the_end > 2
    # The solvers take 32-bit indices alone.
    columns = np.concatenate([first, two[begins_pair], three[begins_triple]]).astype(np.int32)
    rows = np.concatenate([row, row[begins_pair], row[begins_triple]]).astype(np.int32)
    shape = (len(texts), 128 + 128**2 + _TRIGRAMS)
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def shape_features(texts: list[str]) -> NDArray[np.float32]:
    """Dense features of N texts for trees, (N, 83).

    62 counts of letters and digits, the 8 letters at each end, the longest runs of one letter and
    of letters that rise or fall by one, how many letters are different, and how many repeat the one
    before.
    """
    lengths = np.array([len(text) for text in texts])
    width = int(lengths.max(initial=16))  # room for 8 letters at each end
    codes = letter_codes(texts, width)
    counts = np.stack([(codes == letter).sum(axis=1) for letter in _LETTERS], axis=1)
    tail = np.clip(lengths[:, None] + np.arange(-8, 0), 0, None)  # places of the last 8 letters
    ends = [codes[:, :8], np.take_along_axis(codes, tail, axis=1)]
    inside = np.arange(1, width) < lengths[:, None]  # places behind the first that a text has
    steps = np.diff(codes.astype(np.int16), axis=1)
    runs = [_longest_run((steps == step) & inside) for step in (0, 1, -1)]
    different = (counts > 0).sum(axis=1)
    doubled = ((steps == 0) & inside).sum(axis=1)
    columns = [counts, *ends, np.stack([*runs, different, doubled], axis=1)]
    return np.concatenate(columns, axis=1).astype(np.float32)


def _longest_run(steps: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The longest run of True in each row of (N, steps), shape (N,)."""
    run = np.zeros(len(steps), dtype=np.int64)
    longest = run
    for column in steps.T:
        run = np.where(column, run + 1, 0)
        longest = np.maximum(longest, run)
    return longest


def letter_codes(texts: list[str], width: int) -> NDArray[np.uint8]:
    """ASCII codes of each text, shape (N, width), 0 behind its end."""
    codes = "".join(text.ljust(width, "\0") for text in texts).encode("ascii")
    return np.frombuffer(codes, dtype=np.uint8).reshape(len(texts), width)
