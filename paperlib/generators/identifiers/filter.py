"""Dropping look-alikes as in the paper's Appendix A, and a test of the kept identifiers."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binom, norm

from paperlib.core import check_at_least, check_confidence, check_in
from paperlib.generators.identifiers.blind import BASELINES, out_of_fold
from paperlib.generators.identifiers.generate import generate_identifiers
from paperlib.generators.identifiers.kind import Identifier
from paperlib.generators.identifiers.kinds import KINDS

FIXED = "same character at one place too often"
_FEWEST = 20
_FIXED_LEVEL = 5e-4  # chance that a kind of fresh values loses any, in each of two tests of fixed places
_LEARNED = 15  # generated values of each identifier that classifiers learn from; all are scored
_BATCH_CHARACTERS = 6_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class BlindScores:
    """Scores of found and generated values by classifiers that never saw a model.

    Attributes:
        identifiers: The found ones, n of them.
        generated: Generated values of each, n lists of m.
        scores: Per baseline, out-of-fold scores of shape (n, 1 + m), the found one first; higher means
            more like a found one.
    """

    identifiers: tuple[Identifier, ...]
    generated: tuple[tuple[str, ...], ...]
    scores: Mapping[str, NDArray[np.float64]]

    def shares(self, baseline: str) -> NDArray[np.float64]:
        """For each identifier the share of its generated values that score below it, ties half; shape (n,).

        Guarantee:
            Uniform on 0, 1/m, …, 1 (up to ties) for a value drawn from the source of the generated ones:
            its fold's classifier never saw it, and cannot tell it from them.
        """
        found, others = self.scores[baseline][:, :1], self.scores[baseline][:, 1:]
        return ((others < found) + 0.5 * (others == found)).mean(axis=1)

    def report(self, *, confidence: float = 0.95) -> pd.DataFrame:
        """AUC of each baseline with an interval.

        The AUC is within sets: the mean share of its own generated values that a found one beats. The
        interval is normal, over identifiers, with twice the variance of independent shares: each pair of
        identifiers meets twice, once with each of them on the training side, and a classifier that adds up
        similarities decides nearly alike both times. On random values the variance is 1.5 to 2.5 times
        that of independent ones.

        Args:
            confidence: Confidence level, in (0, 1).

        Returns:
            One row per baseline: baseline, identifiers, auc, low, high, near_chance (1/2 in the interval).
        """
        z = float(norm.isf((1 - check_confidence(confidence)) / 2))
        shares = np.array([self.shares(baseline) for baseline in self.scores])
        auc = shares.mean(axis=1)
        margin = z * (shares.std(axis=1, ddof=1) * np.sqrt(2 / len(self.identifiers)))
        table = pd.DataFrame(
            {"baseline": list(self.scores), "identifiers": len(self.identifiers), "auc": auc}
        )
        table = table.assign(low=np.maximum(0.0, auc - margin), high=np.minimum(1.0, auc + margin))
        return table.assign(near_chance=(table["low"] <= 0.5) & (table["high"] >= 0.5))


@dataclass(frozen=True, kw_only=True, eq=False)
class FilteredIdentifiers:
    """Kept identifiers, and the reasons why the others were dropped.

    Attributes:
        kept: The identifiers that stay, in their order.
        dropped: Reason to number: "duplicate", or the baseline that told it from generated ones.
        unjudged: Kinds that no classifier judged, only the test of fixed places: fewer than 20 different
            identifiers, or too few generated values for a share as small as ``extreme``.
        before: Blind AUCs of all different identifiers (`BlindScores.report`).
        after: Blind AUCs of the kept ones, by classifiers fitted anew.
    """

    kept: tuple[Identifier, ...]
    dropped: Mapping[str, int]
    unjudged: tuple[str, ...]
    before: pd.DataFrame
    after: pd.DataFrame


def drop_duplicates(identifiers: Iterable[Identifier]) -> list[Identifier]:
    """The first of each value, in order; letter case is ignored where it carries no information.

    >>> len(drop_duplicates([Identifier("md5", "AB", 0, 2), Identifier("md5", "ab", 9, 11)]))
    1
    """
    first: dict[tuple[str, str], Identifier] = {}
    for one in identifiers:
        first.setdefault((one.kind, KINDS[one.kind].key(one.value)), one)
    return list(first.values())


def blind_scores(
    identifiers: Sequence[Identifier],
    *,
    count: int = 31,
    folds: int = 5,
    seed: int = 0,
    baselines: Sequence[str] = BASELINES,
) -> BlindScores:
    """Score found and generated values by classifiers on character n-grams, out of fold.

    Guarantee:
        An identifier and its generated values are in one fold, and their scores come from classifiers
        fitted on the other folds.

    Source:
        Natural identifiers, Appendix A.
    """
    if len(identifiers) < _FEWEST:
        raise ValueError(f"identifiers: expected at least {_FEWEST}, got {len(identifiers)}")
    if len(drop_duplicates(identifiers)) != len(identifiers):
        raise ValueError("identifiers: expected different ones; use drop_duplicates first")
    check_at_least(1, count=count)
    check_in(f"[2, {len(identifiers)}]", "folds", folds)
    generated = tuple(tuple(generate_identifiers(one, count, seed)) for one in identifiers)
    texts = [
        text for one, others in zip(identifiers, generated, strict=True) for text in (one.value, *others)
    ]
    place = np.tile(np.arange(count + 1), len(identifiers))
    fold = np.repeat(np.random.default_rng(seed).permutation(len(identifiers)) % folds, count + 1)
    scores = {
        name: out_of_fold(name, texts, place == 0, fold, learned=place <= _LEARNED) for name in baselines
    }
    shaped = {name: values.reshape(len(identifiers), count + 1) for name, values in scores.items()}
    return BlindScores(identifiers=tuple(identifiers), generated=generated, scores=shaped)


def filter_identifiers(
    identifiers: Iterable[Identifier],
    *,
    extreme: float = 0.01,
    count: int = 127,
    folds: int = 5,
    seed: int = 0,
    evidence: float | None = None,
) -> FilteredIdentifiers:
    """Drop duplicates, values with a fixed place, and what a blind baseline ranks first or last.

    A place is fixed where more values of a kind have the same character than their generated values would,
    by an exact binomial test at any number of values. Each kind has baselines of its own.

    Guarantee:
        A genuine identifier is dropped by one baseline with probability at most
        ``2 * extreme``; fresh values of a kind lose any to fixed places with probability 0.001 at most.

    A model that was not trained on the kept ones still ranks them at random in the middle: dropping
    extremes of a blind score can only make extreme ranks rarer where the model agrees with that score.

    Args:
        identifiers: Identifiers found in a text.
        extreme: Share at each end whose members are dropped, in [0, 0.5).
        count: Generated values for each.
        folds: Parts of the cross-validation.
        seed: Seed of all random draws.
        evidence: Confidence, in (0, 1), at which a baseline must find more extreme values than among fresh
            ones before it drops any; None drops them in any case, as the paper does.

    Returns:
        The kept ones, the reasons, and the blind AUCs before and after; see ``after`` first.

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
        blind = _blind_in_batches(group, count, folds, seed)
        told |= _told(blind, extreme, evidence)
        dropped.update(told[one] for one in group if one in told)
        before.append(blind.report().assign(kind=kind))
        stay = [one for one in group if one not in told]
        if len(stay) >= _FEWEST:
            again = _blind_in_batches(stay, count, folds, seed + 1)
            after.append(again.report().assign(kind=kind))
    return FilteredIdentifiers(
        kept=tuple(one for one in different if one not in told),
        dropped={reason: number for reason, number in dropped.items() if number},
        unjudged=tuple(unjudged),
        before=pd.concat(before or [_NO_REPORT], ignore_index=True),
        after=pd.concat(after or [_NO_REPORT], ignore_index=True),
    )


_NO_REPORT = pd.DataFrame(columns=["baseline", "identifiers", "auc", "low", "high", "near_chance", "kind"])


def _fixed_places(group: list[Identifier], seed: int) -> set[Identifier]:
    """The values with a character that too many have at one place, or a beginning that another has too.

    Chances are those in generated values, which keep what their kind keeps: there a character tells nothing.
    """
    if len(group) < 2:
        return set()
    others = [generate_identifiers(one, max(20, 600 // len(group)), seed) for one in group]
    width = max(len(one.value) for one in group)
    values = _letters([one.value for one in group], width)
    drawn = _letters([other for some in others for other in some], width)
    law = np.stack([(drawn == letter).mean(axis=0) for letter in range(128)])
    seen = np.stack([(values == letter).sum(axis=0) for letter in range(128)])
    # An upper limit of each chance, since it is itself a share of few values.
    law = np.minimum(1, law + 3 * np.sqrt(law / len(drawn)) + 3 / len(drawn) * (law > 0))
    often = binom.sf(seen - 1, len(group), law) < _FIXED_LEVEL / max(1, np.count_nonzero(seen))
    fixed: NDArray[np.bool_] = np.any(np.asarray(often)[values, np.arange(width)], axis=1)
    order = sorted(range(len(group)), key=lambda at: group[at].value)
    alike = np.logical_and.accumulate(values[order[1:]] == values[order[:-1]], axis=1).sum(axis=1)
    # The chance that two fresh values share so many characters at the start, times the pairs.
    chance = np.concatenate([[1.0], np.cumprod(np.minimum(1, (law**2).sum(axis=0)))]) * len(group) ** 2 / 2
    same = chance[alike] < _FIXED_LEVEL
    fixed[np.array(order[1:])[same]] = fixed[np.array(order[:-1])[same]] = True
    return {one for one, bad in zip(group, fixed, strict=True) if bad}


def _letters(texts: Sequence[str], width: int) -> NDArray[np.uint8]:
    """ASCII codes of each text, shape (N, width), 0 behind its end."""
    return np.array([list(text.ljust(width, "\0").encode("ascii")) for text in texts], dtype=np.uint8)


def _blind_in_batches(group: list[Identifier], count: int, folds: int, seed: int) -> BlindScores:
    """Scores of many identifiers in parts that fit into memory, each with classifiers of its own."""
    size = max(_FEWEST, _BATCH_CHARACTERS // ((count + 1) * len(group[0].value)))
    parts = np.array_split(np.arange(len(group)), max(1, len(group) // size))
    blind = [blind_scores([group[at] for at in part], count=count, folds=folds, seed=seed) for part in parts]
    return BlindScores(
        identifiers=tuple(group),
        generated=tuple(others for one in blind for others in one.generated),
        scores={name: np.concatenate([one.scores[name] for one in blind]) for name in BASELINES},
    )


def _told(blind: BlindScores, extreme: float, evidence: float | None) -> dict[Identifier, str]:
    """The identifiers that a baseline finds extreme, and the first that does.

    With ``evidence`` only for baselines that find more extreme ones than among fresh values.
    """
    told = dict[Identifier, str]()
    for baseline in blind.scores:
        shares, others = blind.shares(baseline), len(blind.generated[0])
        chances = (1 + others * np.minimum(shares, 1 - shares)) / (1 + others)
        found = np.flatnonzero(chances <= extreme)
        chance = float(binom.sf(found.size - 1, chances.size, min(1.0, 2 * extreme)))
        if evidence is not None and chance > (1 - evidence) / len(blind.scores):
            continue
        for at in found:
            told.setdefault(blind.identifiers[at], baseline)
    return told
