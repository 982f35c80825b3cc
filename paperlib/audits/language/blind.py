"""Do members and non-members differ without the model that is audited, and does it know texts like
them?
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from paperlib.attacks.language.windows import in_inference_mode
from paperlib.core import FloatArray, MembershipScores, score_measures
from paperlib.words import blind as words

BLIND_LEVEL = 0.01
"""Chance, at most, that sides chosen by fair coins are said to differ, all signals together."""

_WORSE = 0.5  # nats above the loss of guesses: untrained models are hardly above it


def blind_table(
    tokens: Sequence[Any],
    member: NDArray[np.bool_],
    signals: Mapping[str, FloatArray],
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """One row per signal: signal, auc, auc_low, auc_high, p_value and whether it sets the sides
    apart.

    A logistic regression on the counts of tokens learns on one half of the texts and judges the
    other, and the other way round. Given what it learned from and the numbers of both sides, fair
    coins make each order of the judged texts equally likely, so that the rank-sum test holds on
    each half; the smaller p-value is doubled. A signal is apart below `BLIND_LEVEL` over the number
    of signals.

    ``signals`` are further numbers for each text, whose order may tell the sides apart, such as a
    date.
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    order = np.random.default_rng([seed, 3]).permutation(member.size)
    order = order[np.argsort(member[order], kind="stable")]  # halves with as many of each side
    halves = [order[::2], order[1::2]]
    by_tokens = np.empty(member.size)
    classifier: Any = make_pipeline(
        CountVectorizer(analyzer=cast(Any, list)), LogisticRegression(max_iter=1_000)
    )
    for judged, learned in (halves, halves[::-1]):
        classifier.fit([tokens[index] for index in learned], member[learned])
        chances = classifier.predict_proba([tokens[index] for index in judged])
        by_tokens[judged] = chances[:, 1]
    counts = np.array([len(text) for text in tokens], float)
    everyone = [np.arange(member.size)]
    # Signal to its values, and the groups of texts on which it is tested, each by itself.
    tested: dict[str, tuple[FloatArray, Sequence[NDArray[np.int64]]]] = {
        "which tokens stand there": (by_tokens, halves),
        "the number of tokens": (counts, everyone),
    }
    for name, values in signals.items():
        tested[name] = (values, everyone)
    rows = []
    for name, (values, groups) in tested.items():
        tests = [_rank_sum(values[group], member[group]) for group in groups]
        p_value = min(1.0, len(tests) * min(tests))
        rows.append({"signal": name, **quality(member, values), "p_value": p_value})
    return pd.DataFrame(rows).assign(
        apart=lambda frame: frame["p_value"] <= BLIND_LEVEL / len(frame)
    )


def refusal(blind: pd.DataFrame) -> str:
    """Why no bound is given, from a `blind_table` in which a signal sets the sides apart."""
    columns = ["signal", "auc", "auc_low", "auc_high", "p_value"]
    signals = blind.loc[blind["apart"], columns].itertuples(index=False, name=None)
    return words.sides_differ(list(signals), BLIND_LEVEL)


def look_alikes(texts: Sequence[Any], member: NDArray[np.bool_]) -> tuple[str, ...]:
    """A warning where texts stand on both sides, but for spaces, upper case or the form of
    Unicode.
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
    """A warning where most texts have more than the loss of a guess; a model that sees ahead is
    refused.
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
    """AUC of scores with its 99 % interval, and the true-positive rate at 1 % false positives."""
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
    """Dates as numbers in their order: numbers, such as years, or what pandas reads as a date."""
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


def _rank_sum(values: FloatArray, member: NDArray[np.bool_]) -> float:
    """Two-sided p-value of the rank-sum test."""
    if np.ptp(values) == 0:
        return 1.0
    return float(mannwhitneyu(values[member], values[~member]).pvalue)
