"""Do members and non-members differ without the model that is audited, and does it know texts like
them?
"""

import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import hypergeom, mannwhitneyu

from paperlib.attacks.language.windows import in_inference_mode
from paperlib.audits.language.token_order import order_features
from paperlib.core import FloatArray, MembershipScores
from paperlib.core.intervals import score_measures
from paperlib.words.audits import blind as words

BLIND_LEVEL = 0.002
"""Chance, at most, that sides chosen by fair coins are refused since they differ, all signals
together; the tests are conservative, and about half of it was measured.
"""
DOUBT_LEVEL = 0.01
"""The same of a warning."""

_SHORTEST_TAIL = 8  # texts: fewer of one side are common among the many tails of an audit
_ORDER_WEIGHT = 0.1  # of the errors against the penalty; .03 and .3 saw fewer mixed orders
_HALVES = 3  # stream of a seed: no other draw of an audit of texts is from it
_WORSE = 0.5  # nats above the loss of guesses: untrained models are hardly above it


def blind_table(
    tokens: Sequence[Any],
    member: NDArray[np.bool_],
    signals: Mapping[str, FloatArray],
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """One row per signal that needs no audited model: signal, auc, auc_low, auc_high, tpr, p_value,
    and apart, whether it sets the sides apart.

    Two classifiers, on the counts of tokens and on their order (`order_features`), learn on one
    half of the texts and judge the other, and the other way round. Given what a classifier learned
    from and the numbers of both sides, fair coins make each order of the judged texts equally
    likely, so that `sides_p_value` holds on each half; the smaller p-value is doubled. A signal is
    apart below `BLIND_LEVEL` over the number of signals.

    Args:
        tokens: Tokens of each of n texts.
        member: Whether each text is a member, shape (n,).
        signals: Further numbers for each text by name, shape (n,), whose order may tell the sides
            apart, such as a date.
        seed: Seed of the halves, 0 or more.
    """
    halves = _halves(member, seed)
    counts = np.array([len(text) for text in tokens], float)
    everyone = [np.arange(member.size)]
    # Signal to its values, and the groups of texts on which it is tested, each by itself.
    tested: dict[str, tuple[FloatArray, Sequence[NDArray[np.int64]]]] = {
        "which tokens stand there": (_judged_by_tokens(tokens, member, halves), halves),
        "the order of tokens": (_judged_by_order(tokens, member, halves), halves),
        "the number of tokens": (counts, everyone),
    }
    for name, values in signals.items():
        tested[name] = (values, everyone)
    rows = []
    for name, (values, groups) in tested.items():
        tests = [sides_p_value(values[group], member[group]) for group in groups]
        p_value = min(1.0, len(tests) * min(tests))
        rows.append({"signal": name, **quality(member, values), "p_value": p_value})
    return pd.DataFrame(rows).assign(
        apart=lambda frame: frame["p_value"] <= BLIND_LEVEL / len(frame)
    )


def _halves(member: NDArray[np.bool_], seed: int) -> list[NDArray[np.int64]]:
    """Indices of the texts in two random halves, each with half of the members and half of the
    others; ``member`` has a flag for each text, shape (n,).
    """
    order = np.random.default_rng([seed, _HALVES]).permutation(member.size)
    # Sorted by side, so that every other text takes half of each.
    order = order[np.argsort(member[order], kind="stable")]
    return [order[::2], order[1::2]]


def _judged_by_tokens(
    tokens: Sequence[Any], member: NDArray[np.bool_], halves: Sequence[NDArray[np.int64]]
) -> FloatArray:
    """For each text the chance that it is a member, shape (n,), by the counts of its tokens, as a
    logistic regression on the other half tells.

    Args:
        tokens: Those of each text.
        member: Whether each text is a member, shape (n,).
        halves: Indices of the texts of both halves; each is judged by what the other teaches.
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    by_tokens = np.empty(member.size)
    classifier: Any = make_pipeline(
        CountVectorizer(analyzer=cast(Any, list)), LogisticRegression(max_iter=1_000)
    )
    for judged, learned in (halves, halves[::-1]):
        classifier.fit([tokens[index] for index in learned], member[learned])
        chances = classifier.predict_proba([tokens[index] for index in judged])
        by_tokens[judged] = chances[:, 1]
    return by_tokens


def _judged_by_order(
    tokens: Sequence[Any], member: NDArray[np.bool_], halves: Sequence[NDArray[np.int64]]
) -> FloatArray:
    """For each text a number that is high for members, shape (n,), by the order of its tokens, as a
    linear classifier on the other half tells.

    Args:
        tokens: Those of each text.
        member: Whether each text is a member, shape (n,).
        halves: Indices of the texts of both halves; each is judged by what the other teaches.
    """
    from sklearn.svm import LinearSVC

    features = order_features(tokens)
    by_order = np.empty(member.size)
    # Sides differ in few of the many features, if at all: an L1 penalty leaves most out.
    classifier: Any = LinearSVC(
        penalty="l1", dual=cast(Any, False), C=_ORDER_WEIGHT, random_state=0
    )
    for judged, learned in (halves, halves[::-1]):
        with warnings.catch_warnings():
            # The test holds for any classifier, of an unfinished fit too.
            warnings.filterwarnings("ignore", message=".*converge.*")
            classifier.fit(features[learned], member[learned])
        by_order[judged] = classifier.decision_function(features[judged])
    return by_order


def refusal(blind: pd.DataFrame) -> str:
    """Why no bound is given, from a `blind_table` in which a signal sets the sides apart."""
    columns = ["signal", "auc", "auc_low", "auc_high", "p_value"]
    signals = blind.loc[blind["apart"], columns].itertuples(index=False, name=None)
    return words.sides_differ(list(signals), BLIND_LEVEL)


def doubts(blind: pd.DataFrame) -> tuple[str, ...]:
    """A warning for each signal of a `blind_table` in which chance explains too little, and which
    is no reason to refuse.
    """
    is_doubted = (blind["p_value"] <= DOUBT_LEVEL / len(blind)) & ~blind["apart"]
    columns = ["signal", "auc", "auc_low", "auc_high", "p_value"]
    signals = blind.loc[is_doubted, columns].itertuples(index=False, name=None)
    return tuple(words.sides_may_differ(signal, DOUBT_LEVEL) for signal in signals)


def look_alikes(texts: Sequence[Any], member: NDArray[np.bool_]) -> tuple[str, ...]:
    """A warning where texts stand on both sides, but for spaces, upper case or the form of Unicode;
    ``member`` has a flag for each text, (n,).
    """
    if not isinstance(texts[0], str):
        return ()
    plain = np.array([_folded(text) for text in texts], dtype=object)
    on_both = set(plain[member].tolist()) & set(plain[~member].tolist())
    if not on_both:
        return ()
    return (words.look_alikes(len(on_both)),)


def _folded(text: str) -> str:
    """A text in one form of Unicode, in small letters, with single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def unknown(name: str, model: Any, losses: FloatArray) -> tuple[str, ...]:
    """A warning where three quarters of the texts have a loss well above that of a guess, in which
    all tokens are as likely: the model knows no such texts.

    Args:
        name: What messages call the model, such as "reference".
        losses: Of each text, nats per token, shape (n,).

    Raises:
        ValueError: A model whose prediction of a token depends on later ones.
    """
    if not hasattr(model, "get_input_embeddings"):
        return ()
    from paperlib.models.language import check_causal  # which loads transformers

    with in_inference_mode(model):
        check_causal(model, f"{name}: in it")
    guess = np.log(getattr(model.get_input_embeddings(), "num_embeddings", np.inf))
    are_worse = np.quantile(losses, 0.25) > guess + _WORSE
    if not are_worse:
        return ()
    return (words.unknown(name, float(guess)),)


def quality(member: NDArray[np.bool_], values: FloatArray) -> dict[str, float]:
    """How well ``values``, shape (n,), higher for members, tell the sides: auc with the ends of its
    99 % interval, auc_low and auc_high, and tpr, the true-positive rate at 1 % false positives, NaN
    with too few texts.
    """
    measures = score_measures(MembershipScores(values[member], values[~member]), confidence=0.99)
    low, high = measures.auc_interval
    rate = measures.rates[-1].true_positive_rate
    return {
        "auc": measures.auc,
        "auc_low": low,
        "auc_high": high,
        "tpr": np.nan if rate is None else rate,
    }


def times_of(dates: Sequence[Any]) -> FloatArray:
    """Dates as numbers in their order, shape (n,): numbers, such as years, or what pandas reads as
    a date, in days since 1970.

    Raises:
        ValueError: A date that cannot be read, or in two ways.
    """
    if all(isinstance(date, int | float) for date in dates):
        times = np.array(dates, np.float64)
    else:
        texts = pd.Series([str(date) for date in dates])
        unclear = texts[texts.str.match(r"\s*\d{1,2}[./-]\d{1,2}[./-]\d{2}")]
        if unclear.size:
            raise ValueError(
                f"dates: {unclear.iloc[0]!r} can be read in two ways; write 2026-01-31"
            )
        read = pd.to_datetime(texts, utc=True, format="mixed", errors="coerce")
        days: Any = (read - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
        times = np.asarray(days, np.float64)
    if not np.isfinite(times).all():
        bad = dates[int(np.isfinite(times).argmin())]
        raise ValueError(f"dates: expected dates such as 2026-01-31, or only numbers, got {bad!r}")
    return times


def sides_p_value(values: FloatArray, member: NDArray[np.bool_]) -> float:
    """Two-sided p-value of the hypothesis that values, shape (n,), tell nothing of the sides: that
    of the rank-sum test of Mann and Whitney or that of the tails, the smaller doubled.

    An audit guesses where it is surest, so that a few texts of one side that stand out are enough
    for a bound; ranks as a whole hardly show them.
    """
    if np.ptp(values) == 0:
        return 1.0
    rank_sum = float(mannwhitneyu(values[member], values[~member]).pvalue)
    return min(1.0, 2 * min(rank_sum, _tails_p_value(values, member)))


def _tails_p_value(values: FloatArray, member: NDArray[np.bool_]) -> float:
    """Two-sided p-value of the numbers of members among the lowest and among the highest 8, 16, 32
    ... values, up to half of all: given both sides' numbers, each is hypergeometric.
    """
    p_values: list[FloatArray] = []
    for rising in (values, -values):
        order = np.argsort(rising, kind="stable")
        sizes = _tail_sizes(rising[order])
        members = np.cumsum(member[order])[sizes - 1]
        law = hypergeom(member.size, member.sum(), sizes)
        p_values += [law.cdf(members), law.sf(members - 1)]
    tested = np.concatenate(p_values)
    return min(1.0, tested.size * float(tested.min(initial=1.0)))


def _tail_sizes(rising: FloatArray) -> NDArray[np.int64]:
    """Sizes, 8, 16, 32 ... up to half, of the tails of sorted values, shape (tails,); each has all
    values that equal its last, and may be larger for that.
    """
    most = rising.size // 2
    doublings = int(np.log2(most / _SHORTEST_TAIL)) + 1 if most >= _SHORTEST_TAIL else 0
    sizes = _SHORTEST_TAIL * 2 ** np.arange(doublings)
    return np.searchsorted(rising, rising[sizes - 1], side="right")
