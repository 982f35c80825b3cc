"""The three figures of an audit: histograms of the scores, ROC curve, bound over guesses."""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from paperlib.core import AuditResult, MembershipScores, round_down

_POINTS = 600


def score_histogram(scores: MembershipScores, *, bins: int = 60) -> tuple[Figure, pd.DataFrame]:
    """Histograms of the scores of members and of non-members.

    Returns:
        The figure, and its data: low, high (edges of a bin, the scores' unit), member, nonmember
        (share of each class in the bin).
    """
    edges = np.histogram_bin_edges(scores.pooled()[0], bins=bins)
    shares = {
        "member": np.histogram(scores.member, edges)[0] / scores.member.size,
        "nonmember": np.histogram(scores.nonmember, edges)[0] / scores.nonmember.size,
    }
    fig, axes = plt.subplots(figsize=(5.6, 3.2))
    axes.stairs(shares["member"], edges, label="members", fill=True, alpha=0.45)
    axes.stairs(shares["nonmember"], edges, label="non-members", linewidth=1.6, linestyle="--", color="black")
    axes.set(xlabel="score" if scores.higher_means_member else "loss", ylabel="share of each class")
    axes.legend()
    return fig, pd.DataFrame({"low": edges[:-1], "high": edges[1:], **shares})


def roc_figure(scores: MembershipScores) -> tuple[Figure, pd.DataFrame]:
    """True- against false-positive rate on log axes, which show the leakage of few records.

    Returns:
        The figure, and its data: false_positive_rate, true_positive_rate (at most 600 points).
    """
    fpr, tpr, _ = scores.roc()
    keep = _spread(fpr)
    fpr, tpr = fpr[keep], tpr[keep]
    low = 0.5 / max(scores.member.size, scores.nonmember.size)
    fig, axes = plt.subplots(figsize=(4.2, 3.8))
    axes.plot(np.maximum(fpr, low), np.maximum(tpr, low), label=f"scores (AUC {scores.auc():.3f})")
    axes.plot([low, 1], [low, 1], linestyle="--", color="black", linewidth=1, label="guessing (AUC 0.5)")
    axes.set(xscale="log", yscale="log", xlim=(low, 1.1), ylim=(low, 1.1))
    axes.set(xlabel="false-positive rate", ylabel="true-positive rate")
    axes.legend(loc="lower right")
    return fig, pd.DataFrame({"false_positive_rate": fpr, "true_positive_rate": tpr})


def _spread(rates: np.ndarray) -> np.ndarray:
    """Positions that look evenly spread on a log axis; first and last included."""
    if rates.size <= _POINTS:
        return np.arange(rates.size)
    wanted = np.geomspace(max(rates[rates > 0].min(), 1e-12), 1.0, _POINTS - 2)
    rows = np.searchsorted(rates, wanted, side="right") - 1
    return np.unique(np.concatenate([[0], rows, [rates.size - 1]]))


def bound_figure(curve: pd.DataFrame, epsilon: float) -> Figure:
    """The bound over the number of guesses, already corrected for trying all numbers.

    Args:
        curve: Columns guesses and bound.
        epsilon: The reported bound.
    """
    fig, axes = plt.subplots(figsize=(5.6, 3.2))
    axes.plot(curve["guesses"], curve["bound"], label="bound at this many guesses")
    axes.axhline(
        epsilon, linestyle="--", color="black", linewidth=1, label=f"reported: {round_down(epsilon):.3f}"
    )
    axes.set(xscale="log", ylim=(0, None))
    axes.set(xlabel="guesses made (the rest are abstentions)", ylabel="lower bound on epsilon (nats)")
    axes.legend()
    return fig


def curve_of(result: AuditResult | None) -> pd.DataFrame | None:
    """The bound over guesses of a result that has one."""
    curve = None if result is None else result.curve
    return curve if curve is not None and {"guesses", "bound"} <= set(curve.columns) else None


def describe_roc(data: pd.DataFrame, auc: float) -> str:
    """A ROC curve in words."""
    rates = []
    for target in (0.001, 0.01, 0.1):
        below = data[data["false_positive_rate"] <= target]
        rates.append(f"{below['true_positive_rate'].max():.3f} at false-positive rate {target:g}")
    return f"ROC curve on log axes with AUC {auc:.3f}; the true-positive rate is {', '.join(rates)}."


def describe_bound(curve: pd.DataFrame, epsilon: float) -> str:
    """A bound curve in words."""
    guesses, bounds = curve["guesses"].to_numpy(), curve["bound"].to_numpy()
    return (
        f"Line of the lower bound over {guesses.min()} to {guesses.max()} guesses; "
        f"it is highest, {round_down(epsilon):.3f}, at {guesses[bounds.argmax()]} guesses and "
        f"{round_down(float(bounds[-1])):.3f} when guessing on all of them."
    )


def describe_histogram(scores: MembershipScores) -> str:
    """A pair of histograms in words."""
    what = "scores" if scores.higher_means_member else "losses"
    return (
        f"Two overlaid histograms of {what}: the median is {np.median(scores.member):.4g} for "
        f"{scores.member.size} members and {np.median(scores.nonmember):.4g} for "
        f"{scores.nonmember.size} non-members."
    )
