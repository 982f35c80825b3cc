"""Sorted lists in a corpus: an identifier between sorted neighbours follows from them in part."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import lgamma, log

import numpy as np

from paperlib.generators.identifiers import KINDS, Identifier

SORTED = "stands in a list, and lists of this kind are sorted"
_GAP, _EVIDENCE = 200, 1e6  # characters between neighbours in a list; e-value that is believed
_SHARES = np.array([0.01, 0.05, 0.25, 0.95])  # of lists that are sorted, where some are


class CorpusLists:
    """Lists of identifiers of one kind, close together in a document, and whether they are sorted.

    Guarantee:
        On identifiers drawn independently and alike, in any order fixed before, `sorted_values` is
        empty but with probability 1e-6. So leaving its values out adds at most that to the error of
        an audit. A few sorted lists among many in random order, and neighbours more than 200
        characters apart, are not seen.

        Proof: n different values ascend with chance 1 / n!, and descend with the same. So for a
            share s of
        sorted lists, (1 - s) + s n! [sorted] has mean 1. So have its product over lists without a
        common value, and the mean of products over s, both directions and two ways to cut documents
        into lists. By Markov it exceeds a million times the number of kinds with chance 1e-6 in all
        kinds together.
    """

    def __init__(self) -> None:
        self._logs = defaultdict[str, np.ndarray](lambda: np.zeros((2, 2, _SHARES.size)))
        self._listed = defaultdict[str, set[str]](set)
        self._seen = defaultdict[tuple[str, int], set[str]](set)

    def add(self, text: str, found: Sequence[tuple[Identifier, str]]) -> None:
        """The identifiers of a document in their order, each with a key that equal values share."""
        for kind in {one.kind for one, _ in found}:
            places = [(one, key) for one, key in found if one.kind == kind]
            gaps = [text[a.end : b.start] for (a, _), (b, _) in pairwise(places)]
            near = [len(gap) <= _GAP for gap in gaps]
            # Hashes of the next package follow close: in a list one text stands between all
            # neighbours.
            usual = dict(Counter(gap for gap in gaps if len(gap) <= _GAP).most_common(1))
            for way, joined in enumerate((near, [gap in usual for gap in gaps])):
                ends = [at for at, one in enumerate([*joined, False], 1) if not one]
                for first, last in pairwise([0, *ends]):
                    self._weigh(kind, way, {key: one.value for one, key in places[first:last]})

    def _weigh(self, kind: str, way: int, listed: Mapping[str, str]) -> None:
        if len(listed) < 2:
            return
        self._listed[kind] |= set(listed)
        parts = defaultdict[str, list[str]](list)  # values of one form are drawn alike
        for key, value in listed.items():
            if key not in self._seen[kind, way]:  # a copy of a list says nothing more
                # Without a time, or a word in front.
                start = 19 if kind == "uuid" and value[14] == "7" else value.rfind(" ") + 1
                parts[KINDS[kind].check(value).name].append(KINDS[kind].key(value[start:]))
        self._seen[kind, way] |= set(listed)
        for values in parts.values():
            up = sorted(values)
            gain = np.where(
                [[values == up], [values == up[::-1]]], lgamma(len(values) + 1), -np.inf
            )
            self._logs[kind][way] += np.logaddexp(np.log1p(-_SHARES), np.log(_SHARES) + gain)

    @property
    def e_values(self) -> dict[str, float]:
        """By kind with lists, the logarithm of the e-value against random order."""
        logs = self._logs.items()
        return {kind: float(np.logaddexp.reduce(e, axis=None)) - log(e.size) for kind, e in logs}

    @property
    def sorted_values(self) -> set[str]:
        """Keys of all values that stand in lists of two or more, of kinds whose lists are
        sorted.
        """
        limit = log(_EVIDENCE * max(1, len(self._logs)))
        return set[str]().union(
            *(self._listed[kind] for kind, e in self.e_values.items() if e > limit)
        )
