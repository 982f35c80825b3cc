"""Dropping look-alikes as in the paper's Appendix A, and a test of the kept identifiers."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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

from paperlib.core import check_at_least, check_in
from paperlib.generators.identifiers.kind import Identifier
from paperlib.generators.identifiers.kinds import KINDS
from paperlib.generators.identifiers.scan import generate_identifiers

FIXED = "same character at one place too often"
_FEWEST = 20
_FIXED_LEVEL = (
    5e-4  # chance that a kind of fresh values loses any, in each of two tests of fixed places
)
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
    dropped: Mapping[
        str, int
    ]  # by reason: "duplicate", FIXED, or the baseline that saw the difference
    unjudged: tuple[
        str, ...
    ]  # kinds with fewer than 20 identifiers, or too few generated ones for `extreme`
    before: pd.DataFrame  # `report` of all different identifiers
    after: pd.DataFrame  # of the kept ones, by classifiers fitted anew


def drop_duplicates(identifiers: Iterable[Identifier]) -> list[Identifier]:
    """The first of each value, in order; letter case is ignored where it carries no information."""
    first: dict[tuple[str, str], Identifier] = {}
    for one in identifiers:
        first.setdefault((one.kind, KINDS[one.kind].key(one.value)), one)
    return list(first.values())


def blind_shares(
    identifiers: Sequence[Identifier], count: int, folds: int, seed: int
) -> dict[str, NDArray[np.float64]]:
    """By baseline the share of each one's generated values that look less genuine, ties half,
    (n,).
    """
    # Uniform for a value from the source of the generated ones: the classifier of its fold, which
    # all its generated values are in too, never saw it and cannot tell it from them.
    check_at_least(1, count=count)
    # Many identifiers are judged in parts that fit into memory, each with classifiers of its own.
    size = max(_FEWEST, _BATCH_CHARACTERS // ((count + 1) * len(identifiers[0].value)))
    parts: dict[str, list[NDArray[np.float64]]] = {name: [] for name in BASELINES}
    for places in np.array_split(np.arange(len(identifiers)), max(1, len(identifiers) // size)):
        part = [identifiers[at] for at in places]
        check_in(f"[2, {len(part)}]", "folds", folds)
        texts = [
            text for one in part for text in (one.value, *generate_identifiers(one, count, seed))
        ]
        place = np.tile(np.arange(count + 1), len(part))
        fold = np.repeat(np.random.default_rng(seed).permutation(len(part)) % folds, count + 1)
        for name in BASELINES:
            scores = out_of_fold(name, texts, place == 0, fold, learned=place <= _LEARNED)
            own, others = np.split(scores.reshape(-1, count + 1), [1], axis=1)
            parts[name].append(((others < own) + 0.5 * (others == own)).mean(axis=1))
    return {name: np.concatenate(shares) for name, shares in parts.items()}


def out_of_fold(
    baseline: str,
    texts: list[str],
    found: NDArray[np.bool_],
    fold: NDArray[np.int64],
    *,
    learned: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Scores (N,) of ASCII texts by classifiers of other folds' ``learned`` texts; high is like
    ``found``.
    """
    features: Any = shapes(texts) if baseline == "boosted trees" else ngrams(texts)
    scores, labels = np.empty(len(texts)), found.astype(np.int64)
    for at in np.unique(fold).tolist():
        held, train = fold == at, (fold != at) & learned
        x, y = features[train], labels[train]
        if baseline == "naive Bayes":
            chances: Any = MultinomialNB().fit(x, y).predict_log_proba(features[held])
            scores[held] = chances[:, 1] - chances[:, 0]
        elif baseline == "boosted trees":
            trees = HistGradientBoostingClassifier(max_iter=50, max_leaf_nodes=8, random_state=0)
            trees.fit(x, y, sample_weight=np.where(y == 1, (y == 0).sum() / (y == 1).sum(), 1.0))
            scores[held] = trees.decision_function(features[held])
        else:
            model = LogisticRegression(
                solver="liblinear", C=0.1, class_weight="balanced", max_iter=200
            )
            scores[held] = model.fit(x, y).decision_function(features[held])
    return scores


def report(blind: Mapping[str, NDArray[np.float64]]) -> pd.DataFrame:
    """One row per baseline: baseline, identifiers, auc, low, high, near_chance (1/2 in the
    interval).
    """
    z = float(norm.isf((1 - 0.95) / 2))
    shares = np.array(list(blind.values()))
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
    return pd.DataFrame({"baseline": list(blind), **columns})


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

    Source:
        Natural identifiers, Appendix A, which leaves folds and cut-offs open.
    """
    check_in("[0, 0.5)", "extreme", extreme)
    found = list(identifiers)
    different = drop_duplicates(found)
    dropped = Counter({"duplicate": len(found) - len(different)})
    told, unjudged = dict[Identifier, str](), list[str]()
    before, after = list[pd.DataFrame](), list[pd.DataFrame]()
    for kind in KINDS:
        group = [one for one in different if one.kind == kind]
        fixed = _fixed_places(group, seed)
        told |= dict.fromkeys(fixed, FIXED)
        dropped.update({FIXED: len(fixed)})
        group = [one for one in group if one not in fixed]
        unjudged += [kind] * bool(group and (len(group) < _FEWEST or extreme * (1 + count) < 1))
        if len(group) < _FEWEST:
            continue
        blind = blind_shares(group, count, folds, seed)
        for baseline, shares in blind.items():
            chances = (1 + count * np.minimum(shares, 1 - shares)) / (1 + count)
            rare = np.flatnonzero(chances <= extreme)
            chance = float(binom.sf(rare.size - 1, chances.size, min(1.0, 2 * extreme)))
            if evidence is None or chance <= (1 - evidence) / len(blind):
                for at in rare:
                    told.setdefault(group[at], baseline)
        dropped.update(told[one] for one in group if one in told)
        before.append(report(blind).assign(kind=kind))
        if len(stay := [one for one in group if one not in told]) >= _FEWEST:
            after.append(report(blind_shares(stay, count, folds, seed + 1)).assign(kind=kind))
    return FilteredIdentifiers(
        kept=tuple(one for one in different if one not in told),
        dropped={reason: number for reason, number in dropped.items() if number},
        unjudged=tuple(unjudged),
        before=pd.concat(before or [_NO_REPORT], ignore_index=True),
        after=pd.concat(after or [_NO_REPORT], ignore_index=True),
    )


_NO_REPORT = pd.DataFrame(
    columns=["baseline", "identifiers", "auc", "low", "high", "near_chance", "kind"]
)


def _fixed_places(group: list[Identifier], seed: int) -> set[Identifier]:
    """The values with a character that too many have at one place, or a beginning that another has
    too.
    """
    if len(group) < 2:
        return set()
    # Generated values keep what their kind keeps: there a character tells nothing.
    others = [generate_identifiers(one, max(20, 600 // len(group)), seed) for one in group]
    width = max(len(one.value) for one in group)
    values = letters([one.value for one in group], width)
    drawn = letters([other for some in others for other in some], width)
    law = np.stack([(drawn == letter).mean(axis=0) for letter in range(128)])
    seen = np.stack([(values == letter).sum(axis=0) for letter in range(128)])
    # An upper limit of each chance, since it is itself a share of few values.
    law = np.minimum(1, law + 3 * np.sqrt(law / len(drawn)) + 3 / len(drawn) * (law > 0))
    often = binom.sf(seen - 1, len(group), law) < _FIXED_LEVEL / max(1, np.count_nonzero(seen))
    fixed: NDArray[np.bool_] = np.any(np.asarray(often)[values, np.arange(width)], axis=1)
    order = sorted(range(len(group)), key=lambda at: group[at].value)
    alike = np.logical_and.accumulate(values[order[1:]] == values[order[:-1]], axis=1).sum(axis=1)
    # The chance that two fresh values share so many characters at the start, times the pairs.
    chance = (
        np.concatenate([[1.0], np.cumprod(np.minimum(1, (law**2).sum(axis=0)))])
        * len(group) ** 2
        / 2
    )
    same = chance[alike] < _FIXED_LEVEL
    fixed[np.array(order[1:])[same]] = fixed[np.array(order[:-1])[same]] = True
    return {one for one, bad in zip(group, fixed, strict=True) if bad}


def ngrams(texts: list[str]) -> csr_array:
    """Counts of one, two and three characters in a row, sparse, shape (N, 128 + 128² + 2¹⁵)."""
    lengths = np.array([len(text) for text in texts])
    first = np.frombuffer("".join(texts).encode("ascii"), dtype=np.uint8).astype(np.int64)
    row = np.repeat(np.arange(len(texts)), lengths)
    second, third = np.roll(first, -1), np.roll(first, -2)
    two = 128 + 128 * first + second
    three = 128 + 128**2 + (first * 16_807 + second * 1_299_721 + third * 40_503) % _TRIGRAMS
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(
        len(first)
    )  # letters from here to the end
    columns = [first, two[left > 1], three[left > 2]]
    rows = [row, row[left > 1], row[left > 2]]
    # The solvers take 32-bit places alone.
    at = (np.concatenate(rows).astype(np.int32), np.concatenate(columns).astype(np.int32))
    return csr_array((np.ones(len(at[0])), at), shape=(len(texts), 128 + 128**2 + _TRIGRAMS))


def shapes(texts: list[str]) -> NDArray[np.float32]:
    """Dense features for trees, (N, 83): counts of letters, letters at the ends, repeats, runs and
    length.
    """
    lengths = np.array([len(text) for text in texts])
    width = int(lengths.max(initial=16))
    table = letters(texts, width)
    counts = np.stack([(table == letter).sum(axis=1) for letter in _LETTERS], axis=1)
    tail = np.clip(lengths[:, None] + np.arange(-8, 0), 0, None)
    ends = [table[:, :8], np.take_along_axis(table, tail, axis=1)]
    inside = np.arange(1, width) < lengths[:, None]
    steps = np.diff(table.astype(np.int16), axis=1)
    runs = list[NDArray[np.int64]]()  # the longest of each row
    for step in (0, 1, -1):
        longest = run = np.zeros(len(texts), dtype=np.int64)
        for column in ((steps == step) & inside).T:
            run = np.where(column, run + 1, 0)
            longest = np.maximum(longest, run)
        runs.append(longest)
    different = (counts > 0).sum(axis=1)
    doubled = ((steps == 0) & inside).sum(axis=1)
    columns = [counts, *ends, np.stack([*runs, different, doubled], axis=1)]
    return np.concatenate(columns, axis=1).astype(np.float32)


def letters(texts: list[str], width: int) -> NDArray[np.uint8]:
    """ASCII codes of each text, shape (N, width), 0 behind its end."""
    codes = "".join(text.ljust(width, "\0") for text in texts).encode("ascii")
    return np.frombuffer(codes, dtype=np.uint8).reshape(len(texts), width)
