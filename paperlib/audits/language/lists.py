"""Sorted lists in a corpus: an identifier between sorted neighbours follows from them in part."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import lgamma, log

import numpy as np

from paperlib.generators.identifiers import KINDS, Identifier

_GAP = 200  # characters between neighbours in a list, at most
_EVIDENCE = 1e6  # e-value that is believed
_SHARES = np.array([0.01, 0.05, 0.25, 0.95])  # of lists that are sorted, where some are


class CorpusLists:
    """Lists of identifiers of one kind, close together in a document, and whether they are sorted.

    Guarantee:
        On identifiers drawn independently and alike, in any order fixed before, `sorted_values` is
        empty but with probability 1e-6. So leaving its values out adds at most that to the error of
        an audit. A few sorted lists among many in random order, and neighbours more than 200
        characters apart, are not seen.

        Proof: n different values ascend with chance 1 / n!, and descend with the same. So for a
        share s of sorted lists, (1 - s) + s n! [sorted] has mean 1. So have its product over lists
        without a common value, and the mean of products over s, both directions and two ways to cut
        documents into lists. By Markov it exceeds a million times the number of kinds with chance
        1e-6 in all kinds together.
    """

    def __init__(self) -> None:
        # By kind, logarithms of e-values, shape (ways to cut, directions, shares of sorted lists).
        self._logs = defaultdict[str, np.ndarray](lambda: np.zeros((2, 2, _SHARES.size)))
        self._listed = defaultdict[str, set[str]](set)  # by kind, keys of all values in lists
        # By kind and way, keys of the values that were weighed: a copy of a list says nothing more.
        self._seen = defaultdict[tuple[str, int], set[str]](set)

    def add(self, text: str, identifiers: Sequence[tuple[Identifier, str]]) -> None:
        """Take the identifiers of a document, in the order in which they stand in ``text``, each
        with a key that equal values share.
        """
        for kind in {identifier.kind for identifier, _ in identifiers}:
            of_kind = [(value, key) for value, key in identifiers if value.kind == kind]
            self._add_kind(kind, text, of_kind)

    def _add_kind(
        self, kind: str, text: str, identifiers: Sequence[tuple[Identifier, str]]
    ) -> None:
        """Cut a document's identifiers of one kind into lists, in both ways, and weigh each."""
        neighbours = pairwise(identifiers)
        gaps = [text[before.end : after.start] for (before, _), (after, _) in neighbours]
        for way, joined in enumerate(_joined_gaps(gaps)):
            for start, end in _stretches(joined):
                listed = {key: value.value for value, key in identifiers[start:end]}
                self._weigh(kind, way, listed)

    def _weigh(self, kind: str, way: int, listed: Mapping[str, str]) -> None:
        """Add the evidence of one list that lists of this kind are sorted.

        Args:
            kind: Of its identifiers, such as "uuid".
            way: Number, 0 or 1, of the way in which the document was cut into lists.
            listed: Its values in their order, by their keys.
        """
        if len(listed) < 2:
            return
        self._listed[kind] |= set(listed)
        new = {key: value for key, value in listed.items() if key not in self._seen[kind, way]}
        self._seen[kind, way] |= set(listed)
        forms = defaultdict[str, list[str]](list)  # values of one form are drawn alike
        for value in new.values():
            # A UUID of version 7 (the digit at 14) opens with a time, which would be sorted by
            # itself; its digits from 19 on are random. Other values may have a word in front.
            start = 19 if kind == "uuid" and value[14] == "7" else value.rfind(" ") + 1
            forms[KINDS[kind].check(value).name].append(KINDS[kind].key(value[start:]))
        # A share s of sorted lists multiplies the e-value by (1 - s) + s n! if the list is sorted,
        # of n values, else by 1 - s.
        for values in forms.values():
            ascending = sorted(values)
            is_sorted = [[values == ascending], [values == ascending[::-1]]]
            gain = np.where(is_sorted, lgamma(len(values) + 1), -np.inf)
            self._logs[kind][way] += np.logaddexp(np.log1p(-_SHARES), np.log(_SHARES) + gain)

    @property
    def e_values(self) -> dict[str, float]:
        """By kind with lists, the natural logarithm of the e-value against random order: the mean
        over ways, directions and shares.
        """
        return {
            kind: float(np.logaddexp.reduce(logs, axis=None)) - log(logs.size)
            for kind, logs in self._logs.items()
        }

    @property
    def sorted_values(self) -> set[str]:
        """Keys of all values that stand in lists of two or more, of kinds whose lists are
        sorted.
        """
        # Every kind of identifiers is asked, so each must show as many times the evidence.
        limit = log(_EVIDENCE * max(1, len(self._logs)))
        values: set[str] = set()
        for kind, e_value in self.e_values.items():
            if e_value > limit:
                values |= self._listed[kind]
        return values


def _joined_gaps(gaps: Sequence[str]) -> tuple[list[bool], list[bool]]:
    """Which texts between neighbours keep them in one list, by each of two ways to cut a document.

    Short ones do; or only the most frequent of the short ones, since hashes of the next package may
    follow close, and in a list one text stands between all neighbours.
    """
    is_short = [len(gap) <= _GAP for gap in gaps]
    usual = Counter(gap for gap in gaps if len(gap) <= _GAP).most_common(1)
    is_usual = [bool(usual) and gap == usual[0][0] for gap in gaps]
    return is_short, is_usual


def _stretches(joined: Sequence[bool]) -> list[tuple[int, int]]:
    """Start and end of each run of neighbours that are joined; single ones are runs, too."""
    ends = [index for index, is_joined in enumerate([*joined, False], 1) if not is_joined]
    return list(pairwise([0, *ends]))
